/** `tidemark start`: what a session looks like, before there is one of your own. */
import { renderSample, reportSample } from '../render/sample.ts'
import { readSample } from '../sample.ts'
import { colorsFor, type Terminal } from '../terminal.ts'

export function start(options: { readonly json?: boolean }, terminal: Terminal): void {
  const sample = readSample()
  if (options.json === true) terminal.write(`${JSON.stringify(reportSample(sample), null, 2)}\n`)
  else terminal.write(renderSample(sample, { colors: colorsFor(terminal), columns: terminal.columns }))
}
