/** A temporary folder with the agent's tools on it, for tests. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { isObject } from '../src/json-value.ts'
import { createSeenFiles } from '../src/tools/seen-files.ts'
import { createSessionShells } from '../src/tools/shell-process.ts'
import type { AgentTool } from '../src/tools/tool-definition.ts'
import type { ToolEnvironment } from '../src/tools/tool-environment.ts'

export interface ToolAnswer {
  /** The text of the result; pictures and documents are left out. */
  readonly text: string
  readonly blocks: readonly object[]
  readonly isError: boolean
}

export interface AgentFolder {
  readonly environment: ToolEnvironment
  /** Absolute path of a file in the folder. */
  path(name: string): string
  write(name: string, content: string | Uint8Array): string
  call(tool: AgentTool, input: object, context?: Partial<ToolCallContext>): Promise<ToolAnswer>
}

interface ToolCallContext {
  readonly id: string
  readonly signal: AbortSignal
  readonly progress: (text: string) => void
}

/** Creates an empty folder that is removed, and whose commands are ended, when the test ends. */
export function createAgentFolder(given: Partial<ToolEnvironment> = {}): AgentFolder {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-tools-')))
  const cwd = join(root, 'project')
  mkdirSync(cwd)
  const shells = createSessionShells()
  onTestFinished(async () => {
    await shells.close()
    rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  })
  const environment: ToolEnvironment = {
    cwd,
    spillFolder: join(root, 'spill'),
    env: process.env,
    now: () => Date.now(),
    seenFiles: createSeenFiles(cwd),
    shells,
    ...given,
  }
  let calls = 0
  return {
    environment,
    path: (name) => join(cwd, name),
    write(name, content) {
      const path = join(cwd, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
      return path
    },
    async call(tool, input, context = {}) {
      calls += 1
      const signal = new AbortController().signal
      const whole = { id: `call_${calls}`, name: 'Tool', signal, progress: () => {}, ...context }
      const output = await tool.run(input as never, whole)
      const { content, isError = false } =
        isObject(output) && 'content' in output ? output : { content: output, isError: false }
      if (typeof content === 'string') return { text: content, blocks: [], isError }
      const blocks = content as readonly { readonly text?: string }[]
      return { text: blocks.flatMap(({ text }) => text ?? []).join('\n'), blocks, isError }
    },
  }
}
