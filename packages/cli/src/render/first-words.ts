/** A text as one line of at most so many characters. What a tool printed must not be able to drive the terminal. */
export function firstWords(text: string, width: number): string {
  const line = text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
    .replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const characters = [...line]
  return characters.length <= width ? line : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`
}
