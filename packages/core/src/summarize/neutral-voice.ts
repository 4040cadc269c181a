/**
 * A summary is a record and not speech. A line that gives an order or asks something would be taken for the person's
 * word when it is read again, so it is marked as what it is; nothing is taken out, and quotations are left alone.
 */

const ORDER =
  /^(?:(?:please|now|next|then|ok(?:ay)?|so)[,:]?\s+)*(?:continue|proceed|resume|go (?:on|ahead)|keep (?:going|working)|carry on|let(?:'|’)?s (?:continue|proceed|go on))\b/i
const QUESTION =
  /^(?:(?:so|and|ok(?:ay)?)[,:]?\s+)*(?:shall|should|would|could|can|do|did|may|is it|are you|what|which|how)\b[^\n]*\b(?:i|you|we)\b[^\n]*\?$/i
const COMMAND = /^\/(?:compact|clear|init|resume)\b/
/** Words that pose as the system's, or that would set aside what was said before. */
const POSING =
  /^\W*(?:system(?: (?:prompt|message|note))?\s*:|(?:ignore|disregard|forget|override)\b.{0,30}\b(?:instructions|rules|prompts?)\b)/i
const FENCE = /^\s*(?:```|~~~)/
const MARKER = /^(\s*(?:[-*+]|\d+[.)])?\s*)(.*)$/s
const NUMBERED = /^[ \t#*]*([1-9])[.)][ \t*]*\S/
const QUOTED_SECTION = 6
/** Nobody gives an order of this length. */
const LONGEST = 500

export interface Voiced {
  readonly text: string
  /** Lines that were marked, as they had stood. */
  readonly marked: readonly string[]
}

/** `quoted`: lines that are somebody's own words and stay as they are. */
export function neutralVoice(text: string, quoted: ReadonlySet<string> = new Set()): Voiced {
  const marked: string[] = []
  let section = 0
  let isFenced = false
  const lines = text.split('\n').map((line) => {
    if (FENCE.test(line)) isFenced = !isFenced
    const number = NUMBERED.exec(line)?.[1]
    if (!isFenced && number !== undefined && Number(number) > section) section = Number(number)
    if (isFenced || section === QUOTED_SECTION || line.length > LONGEST || quoted.has(line.trim()))
      return line
    const voiced = neutralLine(line)
    if (voiced !== line) marked.push(line)
    return voiced
  })
  return { text: lines.join('\n'), marked }
}

function neutralLine(line: string): string {
  const [, marker = '', said = ''] = MARKER.exec(line) ?? []
  if (COMMAND.test(said)) return `${marker}A command that was given: \`${said.trim()}\``
  if (POSING.test(said)) return `${marker}Text without any authority: “${said.trim()}”`
  if (ORDER.test(said)) return `${marker}Noted as next: ${said}`
  return QUESTION.test(said.trim()) ? `${marker}Open at the time: ${said}` : line
}
