/**
 * Checks the types of the repository, as `tsc -p tsconfig.json` does, together with the programs that documents show. All of
 * them share one program and its build information: on their own, the documents took five seconds of CPU time.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DOCUMENTS = [
  'README.md',
  'docs/getting-started.md',
  'docs/drop-in.md',
  'docs/events.md',
  'docs/library.md',
  'docs/memory-files.md',
  'docs/openai.md',
  'docs/policy.md',
  'docs/providers.md',
  'docs/system-prompt.md',
  'docs/telemetry.md',
]

/** The program of a document: its lines in blocks of TypeScript, each at its own place, and no others. */
function readProgram(path: string): string {
  let isCode = false
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => {
      const isFence = line.startsWith('```')
      if (isFence) isCode = line === '```ts'
      return isCode && !isFence ? line : ''
    })
  return lines.join('\n')
}

function checkTypes(): readonly ts.Diagnostic[] {
  const { config, error } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  if (error !== undefined) return [error]
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  const documents = new Map(
    DOCUMENTS.map((path) => [join(ROOT, `${path}.ts`), readProgram(join(ROOT, path))]),
  )
  const host = ts.createIncrementalCompilerHost(options)
  const { fileExists, readFile } = host
  host.fileExists = (path) => documents.has(path) || fileExists(path)
  host.readFile = (path) => documents.get(path) ?? readFile(path)
  const rootNames = [...fileNames, ...documents.keys()]
  const program = ts.createIncrementalProgram({ rootNames, options, host })
  const found = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...program.getSyntacticDiagnostics(),
    ...program.getSemanticDiagnostics(),
  ]
  // Writes the build information alone.
  program.emit()
  return found
}

const found = checkTypes()
const names = {
  getCurrentDirectory: () => ROOT,
  getCanonicalFileName: (name: string) => name,
  getNewLine: () => '\n',
}
process.stdout.write(ts.formatDiagnostics(found, names))
process.exitCode = found.length === 0 ? 0 : 1
