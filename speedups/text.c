/* UTF-8, and texts as strings of JSON. */
#include "speedups.h"

static inline bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* Return the first byte that is not ASCII, or is DEL; or end. */
static const uint8_t *skip_ascii(const uint8_t *text, const uint8_t *end)
{
#if defined(__SSE2__)
    while (end - text >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text);
        __m128i is_del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F));
        int found = _mm_movemask_epi8(_mm_or_si128(bytes, is_del));
        if (found)
            return text + __builtin_ctz((unsigned)found);
        text += 16;
    }
#endif
    while (text < end && *text < 0x7F)
        text++;
    return text;
}

/* C1 controls, and ARABIC LETTER MARK. */
static inline bool misleads_2(uint8_t first, uint8_t second)
{
    return (first == 0xC2 && second < 0xA0) || (first == 0xD8 && second == 0x9C);
}

/* LRM, RLM, line and paragraph separators, bidi embeddings; bidi isolates. */
static inline bool misleads_3(uint8_t first, uint8_t second, uint8_t third)
{
    if (first != 0xE2)
        return false;
    if (second == 0x80)
        return third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE);
    return second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

/* Return the length of the harmless character that begins at `text`, which is not ASCII; 0 if there is none. */
static size_t plain_character(const uint8_t *text, const uint8_t *end)
{
    uint8_t first = text[0];
    size_t left = (size_t)(end - text);
    if (first < 0xC2 || first > 0xF4)
        return 0;
    if (first < 0xE0)
        return left >= 2 && continues(text[1]) && !misleads_2(first, text[1]) ? 2 : 0;
    if (first < 0xF0) {
        if (left < 3 || !continues(text[1]) || !continues(text[2]))
            return 0;
        if ((first == 0xE0 && text[1] < 0xA0) || (first == 0xED && text[1] > 0x9F)) /* overlong; a surrogate */
            return 0;
        return misleads_3(first, text[1], text[2]) ? 0 : 3;
    }
    if (left < 4 || !continues(text[1]) || !continues(text[2]) || !continues(text[3]))
        return 0;
    return (first == 0xF0 && text[1] < 0x90) || (first == 0xF4 && text[1] > 0x8F) ? 0 : 4; /* overlong; too large */
}

bool is_plain_utf_8(const uint8_t *text, const uint8_t *end)
{
    while ((text = skip_ascii(text, end)) < end) {
        size_t length = plain_character(text, end);
        if (!length)
            return false;
        text += length;
    }
    return true;
}

static inline bool needs_json_escape(uint8_t byte) { return byte < 0x20 || byte == '"' || byte == '\\'; }

const uint8_t *find_json_escape(const uint8_t *text, const uint8_t *end)
{
#if defined(__SSE2__)
    while (end - text >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text);
        __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8(0x1F)), _mm_set1_epi8(0x1F));
        __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
        __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
        int found = _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, backslash)));
        if (found)
            return text + __builtin_ctz((unsigned)found);
        text += 16;
    }
#endif
    while (text < end && !needs_json_escape(*text))
        text++;
    return text;
}

uint8_t *write_json_escaped(const uint8_t *text, const uint8_t *end, uint8_t *output)
{
    static const char hexadecimal[] = "0123456789abcdef";
    static const char short_escapes[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    for (;;) {
        const uint8_t *stop = find_json_escape(text, end);
        size_t length = (size_t)(stop - text);
        memcpy(output, text, length);
        output += length;
        if (stop == end)
            return output;
        uint8_t byte = *stop;
        text = stop + 1;
        *output++ = '\\';
        if (byte >= 0x20)
            *output++ = byte;
        else if (short_escapes[byte])
            *output++ = (uint8_t)short_escapes[byte];
        else {
            memcpy(output, "u00", 3);
            output[3] = (uint8_t)hexadecimal[byte >> 4];
            output[4] = (uint8_t)hexadecimal[byte & 15];
            output += 5;
        }
    }
}
