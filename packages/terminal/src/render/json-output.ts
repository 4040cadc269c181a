/** JSON for the terminal. What a terminal would execute or show in another order is written as a code; the value is the same. */

/**
 * Characters that JSON leaves as they are: controls of the second set (C1), marks that change the direction of the text,
 * marks without a width, line separators, and tags.
 */
const UNSAFE_CHARACTER =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu

/** Formats a value as JSON, on one line unless `indent` is given. */
export function formatJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll(UNSAFE_CHARACTER, (character) =>
    [...Array(character.length).keys()]
      .map((place) => `\\u${character.charCodeAt(place).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
