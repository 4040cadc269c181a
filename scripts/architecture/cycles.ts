/** Import cycles, type-only imports included: a type that needs a later file is a design that needs it. */
import { importsOf, isRelative, resolveImport } from './imports.ts'
import { type Finding, isTest, type Source } from './source.ts'

type Graph = ReadonlyMap<string, ReadonlyMap<string, number>>

/** One finding for each import that closes a cycle, naming the whole way round. */
export function checkCycles(sources: readonly Source[]): readonly Finding[] {
  const graph = graphOf(sources.filter((source) => !isTest(source.path)))
  const done = new Set<string>()
  const findings: Finding[] = []
  const visit = (path: string, way: readonly string[]): void => {
    if (done.has(path)) return
    for (const [target, line] of graph.get(path) ?? []) {
      const start = way.indexOf(target)
      if (start === -1) visit(target, [...way, target])
      else
        findings.push({
          file: path,
          line,
          why: `closes a cycle: ${[...way.slice(start), target].join(' → ')}`,
        })
    }
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [path])
  return findings
}

function graphOf(sources: readonly Source[]): Graph {
  const known = new Set(sources.map((source) => source.path))
  return new Map(sources.map((source) => [source.path, targetsOf(source, known)]))
}

function targetsOf(source: Source, known: ReadonlySet<string>): ReadonlyMap<string, number> {
  const targets = new Map<string, number>()
  for (const { specifier, line } of importsOf(source)) {
    const target = isRelative(specifier) ? resolveImport(source.path, specifier) : ''
    if (known.has(target) && !targets.has(target)) targets.set(target, line)
  }
  return targets
}
