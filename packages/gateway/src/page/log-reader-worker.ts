/** The thread that reads logs of sessions for the page. Answers one question at a time, and keeps the last log in memory. */
import { parentPort } from 'node:worker_threads'
import { describeThrown } from '@tidemark/core/errors'
import { answerSessionApiRequest, toListedSession } from '@tidemark/page/server/page-routes'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createDayFormatter, readLogText, redactStrings, type SessionPageData } from 'tidemark/internal'
import { inspectLog, type LogContents } from 'tidemark/logs'
import type { LogQuestion, LogSummary, WorkerReply, WorkerTask } from './log-reader.ts'

type WorkerQuestion = Extract<WorkerTask, { readonly type: 'question' }>

/** The log that questions are about. */
let held: LogContents | null = null
/** Lines of the next log that have arrived so far. */
const arrived: string[] = []

parentPort?.on('message', (task: WorkerTask) => {
  if (task.type === 'lines') for (const line of task.lines) arrived.push(line)
  else answer(task).then(post, (thrown: unknown) => post({ ok: false, why: describeThrown(thrown) }))
})

function post(reply: WorkerReply): void {
  parentPort?.postMessage(reply)
}

async function answer({ question, isNew }: WorkerQuestion): Promise<WorkerReply> {
  const { modifiedMs, owner, ask } = question
  if (isNew || held === null) {
    const log = { name: owner.session, modifiedMs, lines: arrived.splice(0) }
    const read = await readLogText(log, { keepsRawBlocks: false })
    if (!read.ok) return { ok: false, why: read.message }
    held = read
  }
  const log = held
  if (ask === null) return { ok: true, answer: summarize(question, log) }
  const { json, ...rest } = await answerSessionApiRequest(
    { readPage: async () => createPage(question, log), readContents: async () => log },
    ask,
  )
  // Sent as text, so that the main thread need not serialize it for its response.
  return {
    ok: true,
    answer: json === undefined ? rest : { ...rest, text: JSON.stringify(json), type: 'application/json' },
  }
}

function createPage({ id, owner, isLive }: LogQuestion, log: LogContents): SessionPageData {
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
