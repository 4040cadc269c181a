/** Files and functions that have outgrown one concept. */
import ts from 'typescript'
import { type Finding, isTest, lineCount, lineOf, parse, type Source, walk } from './source.ts'

export interface SizeLimits {
  readonly fileLines: number
  readonly functionLines: number
  /** Tables and schemas: path, or `path#function`, with the reason why length is no fault there. */
  readonly excepted: ReadonlyMap<string, string>
}

export function checkSizes(sources: readonly Source[], limits: SizeLimits): readonly Finding[] {
  return sources.flatMap((source) => [...fileFindings(source, limits), ...functionFindings(source, limits)])
}

function fileFindings(source: Source, limits: SizeLimits): readonly Finding[] {
  const lines = lineCount(source.text)
  if (lines <= limits.fileLines || limits.excepted.has(source.path)) return []
  return [{ file: source.path, line: 0, why: `has ${lines} lines; the limit is ${limits.fileLines}` }]
}

/** Tests are left out: the body of a `describe` is a list, not a function. */
function functionFindings(source: Source, limits: SizeLimits): readonly Finding[] {
  if (isTest(source.path)) return []
  const file = parse(source)
  const findings: Finding[] = []
  walk(file, (node) => {
    if (!ts.isFunctionLike(node)) return
    const lines = lineCount(node.getText(file))
    const name = nameOf(node)
    if (lines <= limits.functionLines || limits.excepted.has(`${source.path}#${name}`)) return
    findings.push({
      file: source.path,
      line: lineOf(file, node),
      why: `${name} has ${lines} lines; the limit is ${limits.functionLines}`,
    })
  })
  return findings
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) return node.name.getText()
  const { parent } = node
  const named = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)
  return named ? parent.name.getText() : '(anonymous)'
}
