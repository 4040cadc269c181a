/** Finding the memory files for a request: the time depends on the folders in use, not on the size of the project. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import { collectSourceUpdates } from '@tidemark/core/sources/collect-sources'
import { indexShownAttachments } from '@tidemark/core/sources/context-source'
import { SessionBuilder } from '@tidemark/core/testing'
import { memoryFiles } from '../../packages/tidemark/src/sources/memory-files.ts'
import type { BenchCase } from '../harness/bench-case.ts'

const FILES_PER_FOLDER = 20
const { budgets } = computeScaledLimits(DEFAULT_POLICY, { window: 200_000, maxOutput: 64_000 })

export const benchCase: BenchCase = {
  name: 'memory-files',
  compares:
    'memory files of one request, after a file was touched, in a project of 10,000 files with one of 100',
  bound: { atMost: 2 },
  async prepare() {
    const root = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
    const [large, small] = [
      createProject(join(root, 'large'), 10_000),
      createProject(join(root, 'small'), 100),
    ]
    const started = performance.now()
    const calls = 50
    for (let call = 0; call < calls; call += 1) await large()
    console.error(
      `  ${((performance.now() - started) / calls).toFixed(2)} ms for each request with a new path`,
    )
    return {
      subject: large,
      baseline: small,
      close: () => rmSync(root, { recursive: true, force: true }),
    }
  },
}

/** Makes a project with rules, an import and memory files in every folder. Returns what a request does in it. */
function createProject(cwd: string, files: number): () => Promise<unknown> {
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  write('CLAUDE.md', 'Amounts are in cents. @docs/style.md\n')
  write('docs/style.md', 'Names are words.\n')
  write('.claude/rules/typescript.md', '---\npaths: "**/*.ts"\n---\nNo any.\n')
  for (let file = 0; file < files; file += 1) {
    const folder = `src/part-${Math.floor(file / FILES_PER_FOLDER)}`
    if (file % FILES_PER_FOLDER === 0) write(`${folder}/AGENTS.md`, `Rules of ${folder}.\n`)
    write(`${folder}/file-${file}.ts`, 'export {}\n')
  }
  const builder = new SessionBuilder()
  const id = builder.id('call')
  const input = { file_path: join(cwd, 'src/part-1/file-21.ts') }
  builder.assistant(builder.id('m'), [{ type: 'tool_use', id, name: 'Read', input }])
  builder.result(id, 'export {}')
  const { session } = builder
  const shown = indexShownAttachments(updateContextView(emptyContextView(), session).entries)
  return async () => {
    const sources = memoryFiles({ cwd, project: cwd, gitStatus: false })
    const measure = (text: string): number => Math.ceil(text.length / 4)
    const { carried } = await collectSourceUpdates(sources, {
      session,
      shown,
      policy: DEFAULT_POLICY,
      budgets,
      measure,
    })
    if (carried.length !== 3)
      throw new Error(`expected the reminder, a rule and a file, found ${carried.length}`)
    return carried
  }
}
