/** The thread that reads logs of sessions for the page. Answers one question at a time, and keeps the last log in memory. */
import { parentPort } from 'node:worker_threads'
import { answerSessionQuestion, toListedSession } from '@tidemark/page/server/page-routes'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createDayFormatter, readLogText, redactStrings, type SessionPage } from 'tidemark/internal'
import { inspectLog, type LogContents } from 'tidemark/logs'
import type { LogQuestion, LogSummary, WorkerReply, WorkerTask } from './log-reader.ts'

let held: { readonly id: string; readonly version: number; readonly log: LogContents } | null = null

/** The lines of a log whose question has not come yet. */
let arrived: string[] = []

parentPort?.on('message', (task: WorkerTask) => {
  if (task.type === 'lines') {
    for (const line of task.lines) arrived.push(line)
    return
  }
  const lines = task.isNew ? arrived : null
  arrived = []
  answer(task.question, lines).then(
    (reply) => parentPort?.postMessage(reply),
    (thrown: unknown) => parentPort?.postMessage({ ok: false, why: describe(thrown) } satisfies WorkerReply),
  )
})

/** `lines`: null if this version of the log was read last. */
async function answer(question: LogQuestion, lines: readonly string[] | null): Promise<WorkerReply> {
  const { id, version, modifiedMs, owner, ask } = question
  if (lines !== null) {
    const log = await readLogText({ name: owner.session, modifiedMs, lines }, { keepsRawBlocks: false })
    if (!log.ok) return { ok: false, why: log.message }
    held = { id, version, log }
  }
  if (held?.id !== id || held.version !== version) return { ok: false, why: 'The log was not sent.' }
  const { log } = held
  if (ask === null) return { ok: true, answer: summarize(question, log) }
  const given = await answerSessionQuestion(
    { readPage: async () => createPage(question, log), readContents: async () => log },
    ask,
  )
  // Sent as text, which the main thread need not serialize again.
  const { json, ...rest } = given
  return {
    ok: true,
    answer: json === undefined ? rest : { ...rest, text: JSON.stringify(json), type: 'application/json' },
  }
}

function createPage({ id, owner, isLive }: LogQuestion, log: LogContents): SessionPage {
  const options = {
    catalogue: modelCatalogue,
    toDay: createDayFormatter('UTC'),
    seenCalls: new Set<string>(),
  }
  const report = { ...inspectLog(log, options), file: owner.session }
  return redactStrings({ id, report, isLive, undo: null, owner })
}

function summarize(question: LogQuestion, log: LogContents): LogSummary {
  const { report } = createPage(question, log)
  return {
    listed: JSON.stringify(toListedSession('', report, false)),
    losses: JSON.stringify(report.cacheBreaks.map(({ cause, at, costUsd }) => ({ cause, at, usd: costUsd }))),
  }
}

function describe(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
