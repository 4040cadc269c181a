/** Pieces of Markdown that hold any text without coming apart. */

/** A fence longer than any run of backticks in the text. */
export function fenced(text: string, language = ''): string {
  const runs = text.match(/`{3,}/g) ?? []
  const fence = '`'.repeat(Math.max(3, ...runs.map((run) => run.length + 1)))
  return `${fence}${language}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`
}

/** Folded away under one line. The body must not be able to close the fold: fence what is not ours. */
export function folded(line: string, body: string): string {
  return `<details><summary>${line}</summary>\n\n${body}\n\n</details>`
}

/** Text inside HTML, in one line. */
export function inline(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim()
  const short = flat.length > 120 ? `${flat.slice(0, 119)}…` : flat
  return short.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

export function coded(id: string): string {
  return `<code>${inline(id)}</code>`
}

export function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n')
}

/** 1234567 → 1,234,567 */
export function figure(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',')
}
