/** The thread that reads logs for the page of the gateway. */
import { expect, it } from 'vitest'
import { createLogReaderThread, UnreadableLogError } from './log-reader.ts'

const owner = { key: 'ann', team: null, session: 'job' }
/** Returns the lines of a log once they are there. */
const readOnce = (lines: readonly string[] | Promise<readonly string[]>) =>
  async function* () {
    yield await lines
  }
const toQuestion = (id: string) => ({ id, version: 1, modifiedMs: 0, isLive: false, owner, ask: null })

it('a database that fails is no fault of the log, and the next question is answered', async () => {
  const reader = createLogReaderThread()
  const lost = Promise.reject(new Error('Connection terminated.'))
  const failed = reader.ask(toQuestion('a'), readOnce(lost))
  const thrown: unknown = await failed.catch((error: unknown) => error)
  expect(thrown).toEqual(new Error('Connection terminated.'))
  expect(thrown).not.toBeInstanceOf(UnreadableLogError)
  await expect(reader.ask(toQuestion('a'), readOnce(['no log']))).rejects.toBeInstanceOf(UnreadableLogError)
  await reader.close()
})

it('questions that wait when the gateway ends are refused, and their logs are not read', async () => {
  const reader = createLogReaderThread()
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let read = 0
  const ask = (id: string) =>
    reader.ask(toQuestion(id), async function* () {
      read += 1
      begun.resolve()
      await released.promise
      yield []
    })
  const answers = Promise.allSettled(['a', 'b', 'c'].map(ask))
  await begun.promise
  const closed = reader.close()
  released.resolve()
  await closed
  expect((await answers).slice(1).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(read).toBe(1)
})

it('more questions than can be answered soon are refused at once', async () => {
  const reader = createLogReaderThread()
  const released = Promise.withResolvers<readonly string[]>()
  const answers = Array.from({ length: 25 }, (_, index) =>
    reader.ask(toQuestion(`s${index}`), readOnce(released.promise)),
  )
  const refusals = await Promise.all(answers.slice(20).map((answer) => answer.catch(String)))
  expect(refusals).toEqual(Array(5).fill('Error: Too many sessions are being read. Try again soon.'))
  const others = Promise.allSettled(answers)
  const closed = reader.close()
  released.reject(new Error('enough'))
  await closed
  await others
})
