import { describe, expect, it } from 'vitest'
import { Situation } from '../../test/clear/situation.ts'
import {
  createResultPlaceholder,
  findClearCandidates,
  formatRetrievalHint,
  NO_RETRIEVAL,
} from './clear-candidates.ts'

describe('what edits need', () => {
  it('is not cleared: the newest read and the newest change of each of the files used last', () => {
    const situation = new Situation()
    const edit = (file_path: string): string =>
      situation.call('Edit', { file_path, old_string: 'a', new_string: 'b' }, 'abc '.repeat(500))
    const old = [situation.read('/c', 500), situation.read('/b', 500), edit('/b'), situation.read('/a', 500)]
    situation.read('/b', 500)
    edit('/b')
    situation.read('/a', 500)
    situation.say()
    const list = (count: number, tokens = 100_000): readonly string[] =>
      findClearCandidates({
        register: situation.register,
        pins: [],
        keep: 0,
        keptFiles: { count, tokens },
        placeholder: null,
      }).map(({ result }) => result.call.id)
    expect(list(2)).toEqual(old)
    expect(list(3)).toEqual(old.slice(1))
    expect([list(0).length, list(3, 1_100).length]).toEqual([7, 5])
  })
})

describe('what stands where a result was', () => {
  const all = { historyTool: 'history', transcript: '/t.jsonl' }

  it.each([
    ['the tool, where there is one', all, 'To read it, call history with {"id":"call-1"}.'],
    ['else the transcript', { ...all, historyTool: null }, 'To read it, look for call-1 in /t.jsonl.'],
    [
      'else that it cannot be read',
      NO_RETRIEVAL,
      'It cannot be read back here. If you need it, obtain it again.',
    ],
  ])('%s', (_, retrieval, note) => {
    expect(formatRetrievalHint('call-1', retrieval)).toBe(note)
  })

  it('begins with the line that says so', () => {
    expect(createResultPlaceholder('c', NO_RETRIEVAL).content).toBe(
      '[Old tool result content cleared]\nIt cannot be read back here. If you need it, obtain it again.',
    )
    expect(createResultPlaceholder('c', all).content).toBe(
      '[Old tool result content cleared]\nTo read it, call history with {"id":"c"}.',
    )
  })
})
