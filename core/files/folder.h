/* core/files/folder.h -- what lies in a folder. Opens no file. Owns nothing. */
#ifndef GPSTI_FOLDER_H
#define GPSTI_FOLDER_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* path: the folder's as it was given, a separator, and the name; dies when the callback returns. is_picture: by the
   extension, in either case: jpg, jpeg, jpe, jfif, insp, png, tif, tiff, webp, ppm, pgm, pnm, pam or npy; and no FIFO,
   socket or device, nor a link to one, which may never end. False ends the listing. */
typedef bool (*gpst_found_func)(void* user_data, const char* path, bool is_picture);

/* gpst_folder_list -- calls found for each entry of a folder

   Parameters   path      (in)  of the folder
                found     (in)  called in the order of the names, byte by byte; not for names that begin with a dot, and
                                not for folders
                user_data (in)  passed to found
   Shapes       none
   Returns      GPST_OK, also where found ended it | ARGUMENT | NOT_FOUND | ACCESS | MEMORY | IO
   Ownership    nothing is kept
   Threads      any
   Blocking     while the file system lists; allocates the names
   Device       none
   Source       core/files/folder.c          Tests  tests/test_folder.c          Since 0.1
*/
GPST_API gpst_result gpst_folder_list(const char* path, gpst_found_func found, void* user_data);

#ifdef __cplusplus
}
#endif
#endif
