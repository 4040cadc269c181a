import { describe, expect, it } from 'vitest'
import { isVisibleToModel } from '../../src/context/context-entry.ts'
import { listTracedMessages } from '../../src/context/flatten-context.ts'
import { measureContext } from '../../src/engine/measure-context.ts'
import { buildNextRequest, countPrefixTokens } from '../../src/engine/next-request.ts'
import { toBlocks } from '../../src/log/block.ts'
import { readAttachmentKey } from '../../src/sources/context-source.ts'
import { reopen, undoNow } from '../engine/test-session.ts'
import { contextTokens } from './context-tokens.ts'
import { blockFragments } from './generated-sessions.ts'
import {
  addWork,
  checkEachCompaction,
  listUuids,
  messageBytes,
  PLAN,
  requestBytes,
  shownUuids,
  TODO,
  toCompactAsked,
} from './planned-compactions.ts'

describe('compactions of generated sessions', () => {
  it('law 3: every record is shown, summarised or carried, exactly one of them, and what one kept the next may take', () =>
    checkEachCompaction((made, { before, asked, question }) => {
      const { span } = question
      const was = before.view.entries.toArray().filter(isVisibleToModel)
      const classes = [span.summarised, span.kept.filter(isVisibleToModel), span.pinned, span.unanswered].map(
        (list) => new Set(listUuids(list.filter(isVisibleToModel))),
      )
      for (const { record } of was) expect(classes.filter((each) => each.has(record.uuid)).length).toBe(1)
      const now = shownUuids(made.run.state)
      expect(new Set(now).size).toBe(now.length)
      const isNow = new Set(now)
      const carried: readonly (string | null)[] = ['todos:', 'plan:']
      const left = was.filter(({ record }) => !isNow.has(record.uuid))
      const input = new Set(listUuids(span.input))
      for (const { record } of left) {
        const isCarried =
          record.type === 'attachment' && carried.includes(readAttachmentKey(record.attachment))
        if (!isCarried) expect(classes[0]).toContain(record.uuid)
        expect(input.has(record.uuid) || isCarried).toBe(true)
      }
      for (const uuid of classes[0] ?? []) expect(isNow.has(uuid)).toBe(false)
      if (toCompactAsked(before, asked).form === 'full' && made.run.state.pins.size === 0)
        expect(left.length).toBe(was.length - span.unanswered.length)
      expect(made.run.state.view.damage.length).toBe(before.view.damage.length)
    }))

  it('law 1 and 4: it is smaller, by the figure that is told, and the log says the same', () =>
    checkEachCompaction(async (made, { before }) => {
      const [was, is] = [measureContext(before, made.host), measureContext(made.run.state, made.host)]
      expect(is.expected).toBeLessThan(was.expected)
      const told = made.events.findLast(({ type }) => type === 'compact')
      expect(told?.type === 'compact' && told.compaction.tokensAfter).toBe(is.expected)
      const again = await reopen(made)
      expect(requestBytes(again, made.host)).toBe(requestBytes(made.run.state, made.host))
      expect(again.pins).toEqual(made.run.state.pins)
    }))

  it('law 2: what a provider would take before, it takes after', () =>
    checkEachCompaction((made, { before }) => {
      const findings = (state: typeof before) => {
        const { current: standing } = state.prefix
        return standing === null ? [] : buildNextRequest(state, standing, made.host).findings
      }
      if (findings(before).length === 0) expect(findings(made.run.state)).toEqual([])
    }))

  it('law 5: between two of them nothing that was sent changes', () =>
    checkEachCompaction(async (made) => {
      const sent = blockFragments(made.run.state.flat)
      await addWork(made, { form: 'full', pivot: 0, prompts: 1, rounds: 1, pin: null })
      expect(blockFragments(made.run.state.flat).slice(0, sent.length)).toEqual(sent)
    }))

  it('law 7: undo gives exactly the former request', () =>
    checkEachCompaction(async (made, { before }) => {
      const end = await undoNow(made)
      expect(end).toMatchObject({ ok: true, kind: 'compact' })
      expect(messageBytes(made.run.state)).toBe(messageBytes(before))
      expect(made.run.state.prefix.current?.uuid).toBe(before.prefix.current?.uuid)
      const again = await reopen(made)
      expect(messageBytes(again)).toBe(messageBytes(before))
      expect(requestBytes(again, made.host)).toBe(requestBytes(made.run.state, made.host))
    }))

  it('law 10: what nobody has answered comes last, word for word; carriers equal their source, one copy each', () =>
    checkEachCompaction((made, { words }) => {
      const texts = listTracedMessages(made.run.state.flat).flatMap(({ message }) =>
        toBlocks(message.content).flatMap(({ text }) => (typeof text === 'string' ? [text] : [])),
      )
      expect(texts.slice(texts.length - words.length)).toEqual(words)
      const copies = (words: string): readonly string[] => texts.filter((shown) => shown.includes(words))
      expect(copies(PLAN.text).length).toBe(1)
      expect(copies('todo: mend the login')).toEqual(copies(TODO.text))
      expect(copies(TODO.text).length).toBe(1)
    }))

  it('law 11: the meter right after it is the estimate of what would be sent', () =>
    checkEachCompaction((made) => {
      const { state } = made.run
      const { estimator } = made.room
      expect(measureContext(state, made.host)).toEqual(
        contextTokens({
          view: state.view,
          estimator,
          calibration: state.context?.meter.calibration ?? never(),
          policy: made.host.policy.estimate,
          stripsThinking: made.host.profile.thinking.stripsFinishedTurns,
          prefix: () => countPrefixTokens(state, made.host),
        }),
      )
      expect(measureContext(state, made.host).source).toBe('estimated')
    }))
})

function never(): never {
  throw new Error('a session that was compacted has room')
}
