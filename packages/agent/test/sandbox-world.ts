/** `tidemark chat` with the sandbox on, and whether a sandbox works here. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Script } from '@tidemark/simulator'
import { openSandbox } from '../src/sandbox/sandbox.ts'
import { type ChatWorld, createChatWorld, playSteps, type Step } from './chat-world.ts'

/** Why commands cannot be confined here; null if they can. Tests that need the sandbox are skipped otherwise, and say so. */
export const sandboxProblem: string | null = await findProblem()
if (sandboxProblem !== null) console.log(`The tests of the sandbox are skipped: ${sandboxProblem}`)

async function findProblem(): Promise<string | null> {
  const ownFolder = mkdtempSync(join(tmpdir(), 'tidemark-sandbox-'))
  const folder = join(ownFolder, 'project')
  mkdirSync(folder)
  const guards = { isReadOnly: () => false }
  const opened = await openSandbox({ folder, ownFolder, places: new Map(), guards, hasNetwork: false })
  rmSync(ownFolder, { recursive: true, force: true, maxRetries: 10 })
  return opened.ok ? null : opened.why
}

export interface SandboxWorld extends ChatWorld {
  /** Writes a file in the home. */
  writeHome(name: string, content: string): string
  /** Runs these commands, one in each response, and returns their results. */
  runCommands(): Promise<readonly string[]>
}

/** Opens a chat with the sandbox on. `sandbox`: the setting; `more`: other settings of the user. */
export async function openSandboxWorld(
  steps: readonly Step[] | Script,
  sandbox: unknown = true,
  more: object = {},
): Promise<SandboxWorld> {
  const world = await createChatWorld(typeof steps === 'function' ? steps : playSteps(...steps, 'Done.'))
  const writeHome = (name: string, content: string): string => {
    const path = join(world.env.HOME ?? '', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    return path
  }
  writeHome('.config/tidemark/settings.json', JSON.stringify({ sandbox, ...more }))
  return {
    ...world,
    writeHome,
    async runCommands() {
      await world.run('chat', '-p', 'Work.')
      return world.lastResults()
    },
  }
}

/** A response with one command. */
export const bash = (command: string, more: object = {}): Step => ({ Bash: { command, ...more } })
