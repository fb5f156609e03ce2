/* tests/test_metadata_xmp.c -- how GPano may be written, what of it cannot be read, the orientation in XMP, and how
   much of it is read. */
#include "metadata_kit.h"

#include <math.h>

#define URI "\"http://ns.google.com/photos/1.0/panorama/\""
#define NAMESPACE "xmlns:GPano=" URI " "

static blob file;

static const blob* orientation_of(uint32_t value) {
    static blob exif;
    tiff_begin(&exif, true);
    (void)tiff_directory(&exif, 1);
    tiff_number(&exif, ORIENTATION, SHORT, value);
    return &exif;
}

/* ---- GPano ----------------------------------------------------------------------------------------------- */

static gpst_metadata read_xmp(const char* xmp) {
    webp_begin(&file);
    webp_chunk(&file, "XMP ", xmp, strlen(xmp));
    return read_blob(&file);
}

/* Packets that say a sphere of 8000 pixels that was taken towards 12.5 degrees. */
static void forms_that_are_read(void** state) {
    static const char* const packets[] = {
        "<rdf:Description " NAMESPACE "GPano:ProjectionType=\"equirectangular\" GPano:FullPanoWidthPixels=\"8000\" "
        "GPano:PoseHeadingDegrees=\"12.5\"/>",
        "<rdf:Description GPano:ProjectionType='equirectangular' GPano:FullPanoWidthPixels = '8000'\r\n"
        "\tGPano:PoseHeadingDegrees\n=\t\"12.5\" xmlns:GPano\n = " URI "/>",
        "<rdf:Description " NAMESPACE "><GPano:ProjectionType>equirectangular</GPano:ProjectionType>"
        "<GPano:FullPanoWidthPixels>\n 8000\t</GPano:FullPanoWidthPixels>"
        "<GPano:PoseHeadingDegrees rdf:datatype='x'>12.5</GPano:PoseHeadingDegrees></rdf:Description>",
        "<d xmlns:GPano='http://else.where/' xmlns:p='http://ns.google.com/photos/1.0/panorama/' "
        "GPano:ProjectionType='cylindrical' p:ProjectionType='equirectangular' GPano:FullPanoWidthPixels='1' "
        "p:FullPanoWidthPixels='8000'><p:PoseHeadingDegrees>12.5</p:PoseHeadingDegrees></d>",
        /* names that end as one does, and begin as one does */
        "<d " NAMESPACE "xGPano:ProjectionType='cylindrical' GPano:ProjectionTypes='cubic' >"
        "<GPano:ProjectionTypes>cubic</GPano:ProjectionTypes><yGPano:ProjectionType>cubic</yGPano:ProjectionType>"
        "<GPano:PoseHeadingDegreesOf>99</GPano:PoseHeadingDegreesOf><GPano:FullPanoWidthPixels.>1<"
        "/GPano:FullPanoWidthPixels.><GPano:ProjectionType>equirectangular</GPano:ProjectionType>"
        "<GPano:FullPanoWidthPixels>8000</GPano:FullPanoWidthPixels>"
        "<GPano:PoseHeadingDegrees>12.5</GPano:PoseHeadingDegrees></d>",
        /* the first of two */
        "<d xmlns:GPan='GPano' xmlns:=" URI " " NAMESPACE "GPano:ProjectionType='equirectangular' "
        "GPano:ProjectionType='cubic' GPano:PoseHeadingDegrees='12.5' GPano:FullPanoWidthPixels='8000' "
        "GPano:FullPanoWidthPixels='9'/>",
        /* without what it is, and with blanks and capitals in it */
        "<d " NAMESPACE "GPano:FullPanoWidthPixels='8000' GPano:PoseHeadingDegrees='12.5'/>",
        "<d " NAMESPACE "GPano:ProjectionType=' EquiRectangular\n' GPano:FullPanoWidthPixels=' 8e3 ' "
        "GPano:PoseHeadingDegrees='\t1.25E+1'/>",
        /* what is no element: comments, instructions, character data */
        "<!-- <d " NAMESPACE "GPano:ProjectionType='cubic'/> --><?x <d " NAMESPACE "GPano:ProjectionType='cubic'/>?>"
        "<![CDATA[<d " NAMESPACE "GPano:ProjectionType='cubic'/>]]><!x <d " NAMESPACE "><d " NAMESPACE ">"
        "<!-- > <GPano:ProjectionType>cubic</GPano:ProjectionType> --><a b=\"<GPano:ProjectionType>cubic<\"/>"
        "<GPano:ProjectionType><!-- a --> <!-- b -->equirectangular</GPano:ProjectionType>"
        "<GPano:FullPanoWidthPixels>8000</GPano:FullPanoWidthPixels><!-- > <GPano:PoseHeadingDegrees>90</"
        "GPano:PoseHeadingDegrees> --><GPano:PoseHeadingDegrees>12.5</GPano:PoseHeadingDegrees></d>",
        /* two packets, of which each says a part, by another prefix */
        "<?xpacket begin=''?><d " NAMESPACE "GPano:FullPanoWidthPixels='8000' /><?xpacket end='w'?><?xpacket?>"
        "<d xmlns:p=" URI " p:PoseHeadingDegrees='12.5' p:FullPanoWidthPixels='1'/>",
        /* what is said is not empty */
        "<d " NAMESPACE "GPano:PoseHeadingDegrees='' GPano:FullPanoWidthPixels=' ' GPano:ProjectionType=''><d "
        "GPano:FullPanoWidthPixels='8000' GPano:PoseHeadingDegrees='12.5' GPano:PoseRollDegrees=''/></d>",
    };
    (void)state;
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        gpst_metadata wanted = GPST_ZERO;
        const gpst_metadata metadata = read_xmp(packets[i]);
        strcpy(wanted.projection, "equirectangular");
        wanted.has_sphere = true;
        wanted.full_width = 8000;
        wanted.heading = 12.5;
        expect_metadata(&metadata, &wanted);
    }
}

static void forms_that_say_nothing(void** state) {
    static const char* const packets[] = {
        "", " ", "xmlns:", "xmlns:GPano", "xmlns:GPano=", "xmlns:GPano=\"", NAMESPACE, "<d GPano:ProjectionType='a'/>",
        "<d xmlns:GPano='http://ns.google.com/photos/1.0/panorama' GPano:ProjectionType='a'/>",
        "<d xmlns:=" URI " :ProjectionType='a'/>",
        "<d xmlns:a2345678901234567890123456789012=" URI " a2345678901234567890123456789012:ProjectionType='a'/>",
        NAMESPACE "GPano:ProjectionType", NAMESPACE " GPano:ProjectionType=", NAMESPACE " GPano:ProjectionType=\"open",
        NAMESPACE " GPano:ProjectionType=bare ", NAMESPACE " GPano:ProjectionType=''",
        NAMESPACE "<GPano:ProjectionType", NAMESPACE "<GPano:ProjectionType>", NAMESPACE "<GPano:ProjectionType>open",
        NAMESPACE "<GPano:ProjectionType/>x<", NAMESPACE "<GPano:ProjectionType a='b' />x<",
        NAMESPACE "<GPano:ProjectionType></GPano:ProjectionType>",
        NAMESPACE "<GPano:ProjectionType> \n </GPano:ProjectionType>",
    };
    const gpst_metadata nothing = GPST_ZERO;
    (void)state;
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        const gpst_metadata metadata = read_xmp(packets[i]);
        expect_metadata(&metadata, &nothing);
    }
    const gpst_metadata longest = read_xmp("<d xmlns:a234567890123456789012345678901=" URI
                                           " a234567890123456789012345678901:ProjectionType='a'/>");
    assert_string_equal(longest.projection, "a");
}

static void projections(void** state) {
    static const char* const texts[][2] = {{"cylindrical", "cylindrical"}, {"Equirectangular", "equirectangular"},
                                           {"equirectangular ", "equirectangular"}, {"a\xc3\xa4\x7f;\nz", "a?????z"},
                                           {"equirectangular, or the longest name of all",
                                            "equirectangular, or the longest"}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char packet[256];
        snprintf(packet, sizeof packet,
                 "<d " NAMESPACE "GPano:ProjectionType=\"%s\" GPano:PosePitchDegrees=\"1\"/>", texts[i][0]);
        const gpst_metadata metadata = read_xmp(packet);
        assert_string_equal(metadata.projection, texts[i][1]);
        assert_int_equal(metadata.has_sphere, i == 1 || i == 2);
        assert_true(metadata.pitch == 1.0);
    }
}

/* Is any of GPano told? */
static void expect_fault(const gpst_metadata* metadata, const char* fault) {
    gpst_metadata nothing = GPST_ZERO;
    assert_true(strlen(fault) < sizeof nothing.gpano_fault);
    strcpy(nothing.gpano_fault, fault);
    expect_metadata(metadata, &nothing);
}

/* What each text is as a size and as an angle; where it is none nothing of GPano is. */
static void numbers(void** state) {
    static const struct {
        const char* text;
        const char *no_size, *no_angle; /* why; NULL: it is one */
        uint32_t size;
        double angle;
    } cases[] = {
#define NO_NUMBER "is not a number"
#define NO_SIZE "is no number of pixels"
#define NO_ANGLE "is no angle"
        {"0", NULL, NULL, 0, 0.0}, {"4294967295", NULL, NO_ANGLE, 4294967295u, 0.0},
        {"4294967296", NO_SIZE, NO_ANGLE, 0, 0.0}, {"1000000000", NULL, NULL, 1000000000, 1e9},
        {"8000.0", NULL, NULL, 8000, 8000.0}, {"8000.75", NULL, NULL, 8000, 8000.75}, {"007", NULL, NULL, 7, 7.0},
        {"+5", NULL, NULL, 5, 5.0}, {"-5", NO_SIZE, NULL, 0, -5.0}, {"5.", NULL, NULL, 5, 5.0},
        {".5", NULL, NULL, 0, 0.5}, {"-.25", NO_SIZE, NULL, 0, -0.25}, {"", NULL, NULL, 0, 0.0},
        {" 5\t", NULL, NULL, 5, 5.0}, {"2.0E1", NULL, NULL, 20, 20.0}, {"25e-1", NULL, NULL, 2, 2.5},
        {"1e+3", NULL, NULL, 1000, 1000.0}, {"1e999", NO_SIZE, NO_ANGLE, 0, 0.0}, {"1e-999", NULL, NULL, 0, 0.0},
        {"-", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"+", NO_NUMBER, NO_NUMBER, 0, 0.0}, {".", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"-.", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"--5", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"+-5", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"5-", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"20,0", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"20\xc2\xb0", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"1.2.3", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"1..2", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"1e", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"1e+", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"1e1000", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"1e1.5", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"e5", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"0x10", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"nan", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"inf", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"1 000", NO_NUMBER, NO_NUMBER, 0, 0.0}, {"12;", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"\xd9\xa5", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"1234567890123456789012345678901234567890", NO_SIZE, NO_ANGLE, 0, 0.0},
        {"12345678901234567890123456789012345678901", NO_NUMBER, NO_NUMBER, 0, 0.0},
        {"0.000000000000000000000000000000000000001", NULL, NULL, 0, 1e-39},
        {"359.9999999999", NULL, NULL, 359, 359.9999999999}, {"-0.3", NO_SIZE, NULL, 0, -0.3},
        {"123.456789012345", NULL, NULL, 123, 123.456789012345},
    };
    static const char* const names[] = {"FullPanoWidthPixels", "FullPanoHeightPixels", "CroppedAreaImageWidthPixels",
                                        "CroppedAreaImageHeightPixels", "CroppedAreaLeftPixels", "CroppedAreaTopPixels",
                                        "PoseHeadingDegrees", "PosePitchDegrees", "PoseRollDegrees"};
    (void)state;
    for (size_t i = 0; i < 9 * sizeof cases / sizeof cases[0]; i++) {
        const char *const text = cases[i / 9].text, *const name = names[i % 9];
        const char* const why = i % 9 < 6 ? cases[i / 9].no_size : cases[i / 9].no_angle;
        char packet[512], fault[256], shown[21];
        snprintf(packet, sizeof packet,
                 "<d " NAMESPACE "GPano:ProjectionType='equirectangular'><GPano:%s>%s</GPano:%s></d>", name, text,
                 name);
        const gpst_metadata metadata = read_xmp(packet);
        if (why) {
            snprintf(shown, sizeof shown, "%s", text);
            for (char* c = shown; *c; c++)
                *c = *c < ' ' || *c > '~' || *c == ';' ? '?' : *c;
            snprintf(fault, sizeof fault, "%s=\"%s\" %s", name, shown, why);
            expect_fault(&metadata, fault);
            continue;
        }
        const double got[9] = {metadata.full_width, metadata.full_height, metadata.crop_width, metadata.crop_height,
                               metadata.crop_left, metadata.crop_top, metadata.heading, metadata.pitch, metadata.roll};
        const double wanted = i % 9 < 6 ? cases[i / 9].size : cases[i / 9].angle;
        const double off = strlen(text) > 16 ? 1e-15 * fabs(wanted) : 0.0;
        assert_true(metadata.has_sphere);
        if (!(fabs(got[i % 9] - wanted) <= off))
            fail_msg("%s of %s is %.17g", text, name, got[i % 9]);
    }
}

/* An element that is more than its text says something that is not understood. */
static void elements_that_are_no_texts(void** state) {
    static const char* const inners[][2] = {{"<rdf:value>20</rdf:value>", ""}, {"20<!-- north -->.5", "20"},
                                            {"<![CDATA[20]]>", ""}, {"20<br/>", "20"}};
    (void)state;
    for (size_t i = 0; i < sizeof inners / sizeof inners[0]; i++) {
        char packet[512], fault[128];
        snprintf(packet, sizeof packet,
                 "<d " NAMESPACE "GPano:ProjectionType='equirectangular' GPano:PosePitchDegrees='5'>"
                 "<GPano:PoseHeadingDegrees>%s</GPano:PoseHeadingDegrees></d>", inners[i][0]);
        snprintf(fault, sizeof fault, "PoseHeadingDegrees=\"%s\" is not plain text", inners[i][1]);
        const gpst_metadata metadata = read_xmp(packet);
        expect_fault(&metadata, fault);
    }
}

/* Where EXIF says none. */
static void orientations_of_xmp(void** state) {
    static const char* const forms[] = {
        "<d xmlns:tiff='http://ns.adobe.com/tiff/1.0/' tiff:Orientation='%u'/>",
        "<d xmlns:t='http://ns.adobe.com/tiff/1.0/'><t:Orientation>%u</t:Orientation></d>"};
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char packet[256];
        const uint32_t value = i / 2, wanted = value <= 8 ? value : 0;
        snprintf(packet, sizeof packet, forms[i % 2], value);
        assert_int_equal(read_xmp(packet).orientation, wanted);
        webp_chunk(&file, "EXIF", orientation_of(3)->data, orientation_of(3)->bytes);
        assert_int_equal(read_blob(&file).orientation, 3);
        jpeg_begin(&file);
        jpeg_xmp(&file, packet);
        assert_int_equal(read_blob(&file).orientation, wanted);
        png_begin(&file);
        png_text(&file, "zTXt", "XML:com.adobe.xmp", true, packet, strlen(packet));
        assert_int_equal(read_blob(&file).orientation, wanted);
        for (int head = 0; head < 4; head++) {
            if (head & 2)
                bigtiff_begin(&file, head & 1);
            else
                tiff_begin(&file, head & 1);
            (void)tiff_directory(&file, 1);
            tiff_bytes(&file, XMP, BYTE, packet, strlen(packet));
            assert_int_equal(read_blob(&file).orientation, wanted);
            assert_false(read_blob(&file).has_sphere);
        }
    }
}

/* ---- how much of it ------------------------------------------------------------------------------------------ */

#define MOST_XMP ((size_t)4 << 20)

/* A WebP with a packet that begins and ends so, and repeats what is in between; of that many bytes. */
static gpst_metadata read_long(const char* begin, const char* again, const char* end, size_t bytes) {
    uint8_t* const data = (uint8_t*)malloc(20 + bytes + 1);
    assert_non_null(data);
    memcpy(data, "RIFF\0\0\0\0WEBPXMP ", 16);
    for (int i = 0; i < 4; i++)
        data[16 + i] = (uint8_t)(bytes >> 8 * i);
    for (size_t i = 0, n = strlen(again); i < bytes; i++)
        data[20 + i] = (uint8_t)again[i % n];
    memcpy(data + 20, begin, strlen(begin));
    memcpy(data + 20 + bytes - strlen(end), end, strlen(end));
    const gpst_metadata metadata = read_bytes(data, 20 + bytes);
    free(data);
    return metadata;
}

/* None of these takes longer than its bytes: the test's time limit is far beyond. */
static void long_packets(void** state) {
    static const char* const repeated[] = {
        "<GPano:FullPanoWidthPixels ", "<GPano:FullPanoWidthPixels>", "<GPano:FullPanoWidthPixels", " GPano:", "xmlns:",
        " xmlns:GPano=", "<a b=\"", "<a b='\"", "<a ", "=", "\"", "<", ">", "<!--", "<!-- --", "<![CDATA[", "]]", "<?",
        "<? ? ", "</", "<!", "<a xmlns:GPano='", " GPano:PoseHeadingDegrees=", "<GPano:PoseHeadingDegrees><!--"};
    (void)state;
    for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++) {
        const gpst_metadata metadata = read_long("<d " NAMESPACE ">", repeated[i], "", MOST_XMP);
        assert_string_equal(metadata.note, "");
    }
}

static void packets_beyond_the_limit(void** state) {
    const char* const end = "<d " NAMESPACE "GPano:PoseHeadingDegrees='5'/>";
    (void)state;
    gpst_metadata metadata = read_long("", " ", end, MOST_XMP);
    assert_true(metadata.heading == 5.0 && metadata.note[0] == 0);
    metadata = read_long("", " ", end, MOST_XMP + 1);
    assert_true(metadata.heading == 0.0);
    assert_string_equal(metadata.note, "not read: XMP");
    png_begin(&file); /* more parts than are read */
    for (int i = 0; i < 17; i++)
        png_text(&file, "tEXt", "XML:com.adobe.xmp", false, "<a/>", 4);
    assert_string_equal(read_blob(&file).note, "not read: XMP");
}

/* Said, and not taken for a file without one: with a byte order mark and without, either byte first. */
static void packets_in_utf16(void** state) {
    static const char packet[] = "\xff\xfe<\0a\0/\0>\0<\0/\0a\0>";
    (void)state;
    for (size_t from = 0; from < 4; from++) {
        if (from == 1)
            continue; /* half a mark */
        png_begin(&file);
        png_text(&file, "tEXt", "XML:com.adobe.xmp", false, packet + from, sizeof packet - 1 - from);
        assert_string_equal(read_blob(&file).note, "not read: XMP");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_that_are_read),
        cmocka_unit_test(forms_that_say_nothing),
        cmocka_unit_test(projections),
        cmocka_unit_test(numbers),
        cmocka_unit_test(elements_that_are_no_texts),
        cmocka_unit_test(orientations_of_xmp),
        cmocka_unit_test(long_packets),
        cmocka_unit_test(packets_beyond_the_limit),
        cmocka_unit_test(packets_in_utf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
