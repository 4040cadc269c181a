/** JSON for the terminal. Characters that a terminal would execute or reorder are written as codes; the value is the same. */

/**
 * Characters that JSON.stringify does not escape: C1 control characters, marks that change the text direction, marks without a width, line
 * separators, and tag characters.
 */
const UNSAFE_CHARACTER =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu

/** Formats a value as JSON that is safe to print on a terminal; on one line unless `indent` is given. */
export function formatJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll(UNSAFE_CHARACTER, (character) =>
    [...Array(character.length).keys()]
      .map((place) => `\\u${character.charCodeAt(place).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
