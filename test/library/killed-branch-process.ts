/** A process of its own: holds a conversation, goes to another branch or asks beside it, and kills itself at once. */
import { writeSync } from 'node:fs'
import type { Session } from 'tidemark'
import { createBranchWorld } from './branch-world.ts'

export interface KilledBranchInput {
  readonly home: string
  readonly act: 'rewind' | 'clear' | 'fork' | 'ask'
}

/** What the process prints before it is killed. */
export interface KilledBranchReport {
  readonly before: string
  readonly after: string
  readonly result: unknown
}

const { home, act }: KilledBranchInput = JSON.parse(process.argv[2] ?? '{}')
const { tide } = createBranchWorld(home)
const session = await tide.open('talk')
const prompts: string[] = []
session.on('appended', ({ records }) => {
  for (const record of records) if (record.type === 'user') prompts.push(record.uuid ?? '')
})
for (const prompt of ['One', 'Two', 'Three']) await session.run(prompt, { tools: {} }).outcome
const before = JSON.stringify(session.messages())
const result = await runAct(session)
const report: KilledBranchReport = { before, after: JSON.stringify(session.messages()), result }
writeSync(1, `${JSON.stringify(report)}\n`)
process.kill(process.pid, 'SIGKILL')

async function runAct(of: Session): Promise<unknown> {
  if (act === 'rewind') return of.rewind(prompts[1] ?? '')
  if (act === 'clear') return of.clear()
  if (act === 'ask') return of.ask('What did I say first?')
  return (await of.fork('other')).id
}
