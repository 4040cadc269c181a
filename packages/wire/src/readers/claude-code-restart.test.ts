import type { SessionRecord } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { claudeCodeReminder } from './claude-code-reminder.ts'
import { isClaudeCodeRestart } from './claude-code-restart.ts'

const line = (fields: object): SessionRecord => ({ type: 'progress', ...fields }) as SessionRecord
const said = (content: unknown): SessionRecord => line({ type: 'user', message: { role: 'user', content } })

describe('isClaudeCodeRestart', () => {
  it.each<[string, SessionRecord, boolean]>([
    ['the program comes up', line({ data: { hookName: 'SessionStart:startup' } }), true],
    ['a session is taken up again', line({ data: { hookName: 'SessionStart:resume' } }), true],
    [
      'logged as an attachment',
      line({ type: 'attachment', attachment: { hookName: 'SessionStart:resume' } }),
      true,
    ],
    ['a hook after a compaction', line({ data: { hookName: 'SessionStart:compact' } }), false],
    ['another hook', line({ data: { hookName: 'Stop' } }), false],
    ['the person leaves', said('<command-name>/exit</command-name>\n<command-args></command-args>'), true],
    ['another command', said('<command-name>/compact</command-name>'), false],
    ['a word about leaving', said('what does <command-name>/exit</command-name> do?'), false],
    ['blocks', said([{ type: 'text', text: '<command-name>/exit</command-name>' }]), false],
    ['nothing of the kind', line({}), false],
  ])('%s', (_, record, is) => {
    expect(isClaudeCodeRestart(record, undefined)).toBe(is)
  })

  it.each<[string, object, object, boolean]>([
    ['another version', { version: '2.1.37' }, { version: '2.1.36' }, true],
    ['the same', { version: '2.1.36' }, { version: '2.1.36' }, false],
    ['a line without one', {}, { version: '2.1.36' }, false],
    ['behind a line without one', { version: '2.1.36' }, {}, false],
  ])('%s', (_, now, before, is) => {
    expect(isClaudeCodeRestart(line(now), line(before))).toBe(is)
  })
})

describe('claudeCodeReminder', () => {
  it('is a guess for logs that leave out what the program adds', () => {
    expect(claudeCodeReminder([line({}), said('go')])?.every).toBe(10)
    expect(claudeCodeReminder([said('go'), line({ type: 'attachment', attachment: {} })])).toBeUndefined()
  })
})
