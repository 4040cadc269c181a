/** A folder of made-up logs that goes away with the test, and lines to fill them with. */
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach } from 'vitest'

const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

export interface LogFolder {
  readonly path: string
  /** Writes a file, `age` seconds old, and gives its path. */
  file(name: string, content: string | Uint8Array, age?: number): string
}

const NOW_SECONDS = 1_800_000_000

export function logFolder(): LogFolder {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-logs-'))
  folders.push(path)
  return {
    path,
    file(name, content, age = 0) {
      const full = join(path, name)
      mkdirSync(dirname(full), { recursive: true })
      writeFileSync(full, content)
      utimesSync(full, NOW_SECONDS - age, NOW_SECONDS - age)
      return full
    },
  }
}

/** A line as Claude Code writes it. */
export function userLine(uuid: string, more: object = {}): string {
  const message = { role: 'user', content: `said ${uuid}` }
  return JSON.stringify({
    type: 'user',
    uuid,
    parentUuid: null,
    sessionId: 's',
    timestamp: '2026-01-02T03:04:05.000Z',
    message,
    ...more,
  })
}

/** A response of one tool call. */
export function callLine(uuid: string, parentUuid: string | null, call: string): string {
  const content = [{ type: 'tool_use', id: call, name: 'Bash', input: {} }]
  const message = {
    id: `m-${uuid}`,
    role: 'assistant',
    model: 'm',
    content,
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  return userLine(uuid, { type: 'assistant', parentUuid, message, cwd: '/projects/boat', version: '2.0.0' })
}

export function resultLine(uuid: string, parentUuid: string | null, call: string): string {
  const content = [{ type: 'tool_result', tool_use_id: call, content: 'ok' }]
  return userLine(uuid, { parentUuid, message: { role: 'user', content } })
}

export function text(...lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}
