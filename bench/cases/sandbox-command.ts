/** A command of the agent in the sandbox. What it adds is a few namespaces and two searches of the working directory. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSandbox } from '../../packages/agent/src/sandbox/sandbox.ts'
import { createBashTools } from '../../packages/agent/src/tools/bash-tools.ts'
import { createSeenFiles } from '../../packages/agent/src/tools/seen-files.ts'
import { createSessionShells } from '../../packages/agent/src/tools/shell-process.ts'
import type { BenchCase } from '../harness/bench-case.ts'

async function openPlace() {
  const ownFolder = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
  const folder = join(ownFolder, 'project')
  // As many folders as a small project has.
  for (let number = 0; number < 100; number += 1)
    mkdirSync(join(folder, `src/part-${number % 10}/${number}`), { recursive: true })
  const isReadOnly = (path: string): boolean => path.endsWith('/.git')
  const options = { folder, ownFolder, places: new Map(), guards: { isReadOnly }, hasNetwork: false }
  const opened = await openSandbox(options)
  return { ownFolder, folder, sandbox: opened.ok ? opened.sandbox : null }
}

async function isConfining(): Promise<boolean> {
  const { ownFolder, sandbox } = await openPlace()
  rmSync(ownFolder, { recursive: true })
  return sandbox !== null
}

const SANDBOX_CASE: BenchCase = {
  name: 'sandbox-command',
  compares: 'the command `true` in the sandbox, in a folder of 110 folders, with the same outside',
  bound: { atMost: 8 },
  async prepare() {
    const { ownFolder, folder, sandbox } = await openPlace()
    const shells = createSessionShells()
    const environment = {
      cwd: folder,
      spillFolder: join(ownFolder, 'outputs'),
      env: process.env,
      now: Date.now,
    }
    const tools = createBashTools({
      ...environment,
      ...{ seenFiles: createSeenFiles(folder), shells },
      ...(sandbox === null ? {} : { sandbox }),
    })
    const signal = new AbortController().signal
    const run = (outside: boolean) =>
      tools.Bash?.run({ command: 'true', outside } as never, {
        id: 'call',
        name: 'Bash',
        signal,
        progress: () => {},
      })
    return {
      subject: () => run(false),
      baseline: () => run(true),
      async close() {
        await shells.close()
        rmSync(ownFolder, { recursive: true })
      },
    }
  },
}

/** None where the sandbox does not work. */
export const benchCases: readonly BenchCase[] = (await isConfining()) ? [SANDBOX_CASE] : []
