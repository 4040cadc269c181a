/** Bytes that `text` takes as UTF-8. A surrogate without its other half counts three, as the character put in its place does. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    bytes += unit < 0x800 ? 1 : 2
    if (isPair(text, index, unit)) index += 1
  }
  return bytes
}

/** Two units and four bytes: the two units are counted already, and two more were just added. */
function isPair(text: string, index: number, unit: number): boolean {
  if (unit < 0xd800 || unit > 0xdbff || index + 1 >= text.length) return false
  const next = text.charCodeAt(index + 1)
  return next >= 0xdc00 && next <= 0xdfff
}

/** UTF-8 bytes of the JSON of `value`; null for what has no JSON (a cycle, a big integer, bottomless nesting). */
export function jsonBytes(value: unknown): number | null {
  try {
    return utf8Length(JSON.stringify(value) ?? 'null')
  } catch {
    return null
  }
}
