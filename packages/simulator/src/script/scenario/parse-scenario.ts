/** The text of a scenario, in YAML or JSON; what is wrong with it is told with its line. */
import { isNode, LineCounter, parseDocument } from 'yaml'
import { type Path, problemText, readAll } from '../fields.ts'
import type { Scenario } from '../scenario.ts'
import { scenarioReader } from './read-scenario.ts'

export type ParsedScenario =
  | { readonly ok: true; readonly scenario: Scenario }
  /** A line each: file, line, place in the document, what was expected. */
  | { readonly ok: false; readonly problems: readonly string[] }

/** `file` is what the text is called in errors. JSON is read as the YAML it is. */
export function parseScenario(source: string, file: string): ParsedScenario {
  const lines = new LineCounter()
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false })
  if (document.errors.length > 0)
    return {
      ok: false,
      problems: document.errors.map(
        ({ message, pos }) => `${file}:${lines.linePos(pos[0]).line}: ${oneLine(message)}`,
      ),
    }
  const reading = readAll(scenarioReader(file), document.toJS())
  if (reading.ok) return { ok: true, scenario: reading.value }
  return {
    ok: false,
    problems: reading.problems.map((problem) => `${file}:${lineOf(problem.path)}: ${problemText(problem)}`),
  }

  /** Of the value at the path, or of the nearest thing around it that is there. */
  function lineOf(path: Path): number {
    const node = path.length === 0 ? document.contents : document.getIn(path, true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
    return path.length === 0 ? 1 : lineOf(path.slice(0, -1))
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}
