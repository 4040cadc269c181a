/** A process of its own: runs the acts named on its input, prints their outcomes, and releases the session after each. */
import { createInterface } from 'node:readline'
import { commitReviewedDraft } from '@tidemark/core/compaction/commit-draft'
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import { planCompaction } from '@tidemark/core/compaction/plan-compaction'
import { prepareDraftForReview } from '@tidemark/core/compaction/prepare-draft'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { runToEnd } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { appendUserMessage } from './interruptible-acts.ts'
import { compactSession, MANUAL, openRun } from './rewrite-acts.ts'
import { createRewriteHost, SESSION } from './rewrite-host.ts'

const [home = '', name = ''] = process.argv.slice(2)
const journal = createFileJournal({ home, program: name })
const host = createRewriteHost({ journal })
let prepared: { readonly run: TurnContext; readonly draft: CompactionDraft } | null = null

async function prepare(): Promise<string> {
  const run = await openRun(host)
  const plan = planCompaction(run.state, MANUAL, host)
  if (!plan.ok) return plan.reason
  const draft = await runToEnd(prepareDraftForReview(run, plan))
  if (!draft.ok) return draft.reason
  prepared = { run, draft }
  return 'ok'
}

/** Retries until no other process holds the session. */
async function commit(): Promise<string> {
  if (prepared === null) return 'nothing'
  for (;;) {
    const end = await runToEnd(commitReviewedDraft(prepared.run, prepared.draft))
    await journal.release(SESSION)
    if (end.ok || end.reason !== 'locked') return end.ok ? 'ok' : end.reason
  }
}

/** Messages and compactions in turn, retried while the session is locked. */
async function work(rounds: number): Promise<string> {
  let compacted = 0
  for (let round = 0; round < rounds; round += 1) {
    await retryUntilDone(() =>
      appendUserMessage(
        host,
        `${name} says number ${round}. ${'More words, so that there is something to sum up. '.repeat(40)}`,
      ),
    )
    if (round % 3 === 2) {
      const end = await compactSession(host)
      await journal.release(SESSION)
      compacted += end.ok ? 1 : 0
    }
  }
  return `ok ${compacted}`
}

async function retryUntilDone(act: () => Promise<void>): Promise<void> {
  for (;;) {
    const isDone = await act().then(
      () => true,
      () => false,
    )
    await journal.release(SESSION)
    if (isDone) return
  }
}

console.log('ready')
for await (const command of createInterface({ input: process.stdin })) {
  const [word = '', number = '0'] = command.split(' ')
  const said =
    word === 'prepare' ? await prepare() : word === 'commit' ? await commit() : await work(Number(number))
  console.log(`${word}: ${said}`)
}
