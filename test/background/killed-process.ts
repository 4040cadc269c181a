/** A process of its own: works until a summary is being prepared, is ready or was swapped in, and kills itself then. */
import type { SessionEventType } from 'tidemark'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

export interface KilledInput {
  readonly home: string
  /** Event at which the process is killed, and milliseconds after it. */
  readonly at: SessionEventType
  readonly afterMs: number
}

export function createKilledWorld(home: string): TestTidemark {
  return createTestTidemark({
    policy: { notes: { enabled: false } },
    home,
    window: 16_000,
    realWindow: 16_000,
    modelId: 'claude-sonnet-4-5',
    env: { DISABLE_MICROCOMPACT: '1' },
    seed: String(process.pid),
    turns: 6,
    resultTokens: 500,
  })
}

const given = process.argv[2]
if (given?.startsWith('{') === true) {
  const { home, at, afterMs }: KilledInput = JSON.parse(given)
  const { tide, tools } = createKilledWorld(home)
  const session = await tide.open('talk')
  session.on(at, () => {
    if (afterMs === 0) process.kill(process.pid, 'SIGKILL')
    else setTimeout(() => process.kill(process.pid, 'SIGKILL'), afterMs)
  })
  for (let prompt = 1; prompt < 60; prompt += 1) await session.run(`Step ${prompt}.`, tools).outcome
}
