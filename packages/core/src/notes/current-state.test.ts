import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { readNotesSection, writeNotes } from '../../test/summarize/written-notes.ts'
import type { NotesSectionName } from './notes-file.ts'

const section = (session: CodingSession, name: NotesSectionName): string =>
  readNotesSection(writeNotes(session.history), name)

describe('the current state', () => {
  it('has the latest instruction word for word, and says that the model is at work on it', () => {
    const session = new CodingSession()
    session.says('Build the importer.')
    session.answers('It is built.')
    session.says('Now make it fast.\n\n# and keep it simple')
    session.runs('npm run bench', '12 ms')
    const state = section(session, 'state')
    expect(state).toContain('Latest instruction:\n> Now make it fast.\n> \n> # and keep it simple\n')
    expect(state).toContain(
      'The model is at work on it: 1 tool call since then, the last one Bash `npm run bench`.',
    )
  })

  it('quotes a very long instruction by its ends', () => {
    const session = new CodingSession()
    const text = `${'a'.repeat(600)}${'b'.repeat(4_000)}${'c'.repeat(600)}`
    session.says(text)
    expect(section(session, 'state')).toContain(`> ${'a'.repeat(500)}…${'c'.repeat(500)}\n`)
  })

  it('lists the open todos and says how many are done', () => {
    const session = new CodingSession()
    session.says('Go on.')
    session.lists([
      { content: 'Read the parser', status: 'completed' },
      { content: 'Write the test', status: 'in_progress' },
      { content: 'Fix it', status: 'pending' },
      { content: 'Old idea', status: 'cancelled' },
    ])
    const state = section(session, 'state')
    expect(state).toContain('Todo list, 2 of 4 done:\n- [>] Write the test\n- [ ] Fix it')
    expect(state).not.toContain('Old idea')
  })

  it('follows single tasks as they are created, renamed and finished', () => {
    const session = new CodingSession()
    session.calls('TaskCreate', { subject: 'One' }, 'Task #1 created successfully: One')
    session.calls('TaskCreate', { subject: 'Two' }, 'Task #2 created successfully: Two')
    session.calls('TaskUpdate', { taskId: '1', status: 'completed' }, 'Updated task #1')
    session.calls('TaskUpdate', { taskId: '2', subject: 'Second', status: 'in_progress' }, 'Updated task #2')
    session.calls('TaskUpdate', { taskId: '2', status: 'completed' }, 'no such task', true)
    expect(section(session, 'state')).toBe('Todo list, 1 of 2 done:\n- [>] Second')
    expect(section(session, 'worklog')).toContain('done: One')
  })

  it('names calls whose result is still missing', () => {
    const session = new CodingSession()
    session.says('Test it.')
    const { builder } = session
    builder.assistant('msg', [{ type: 'tool_use', id: 'open', name: 'Bash', input: { command: 'npm test' } }])
    expect(section(session, 'state')).toContain('- No result yet: Bash `npm test`')
    expect(section(session, 'workflow')).toBe('')
    session.says('Never mind.')
    expect(section(session, 'state')).not.toContain('No result yet')
  })

  it('says that the model is at work while its call has no result, whatever it wrote before the call', () => {
    const session = new CodingSession()
    session.says('Test it.')
    const call = { type: 'tool_use', id: 'open', name: 'Bash', input: { command: 'npm test' } } as const
    session.builder.assistant('msg', [{ type: 'text', text: 'Let me test it.' }, call])
    const waiting = '- No result yet: Bash `npm test`'
    expect(section(session, 'state')).toContain(`The model is at work on it.\n${waiting}`)
    session.builder.result('open', 'ok')
    session.builder.assistant('next', [
      { type: 'text', text: 'Once more.' },
      { ...call, id: 'again' },
    ])
    expect(section(session, 'state')).toContain(
      `The model is at work on it: 1 tool call since then, the last one Bash \`npm test\`.\n${waiting}`,
    )
  })

  it('says that the model is at work after a text that its response goes on from', () => {
    const session = new CodingSession()
    session.says('Test it.')
    session.runs('ls', 'a')
    const message = { id: 'msg', role: 'assistant', model: 'model-a', stop_reason: 'tools' } as const
    session.builder.assistant('msg', [], {
      message: { ...message, content: [{ type: 'text', text: 'Now the tests.' }] },
    })
    expect(section(session, 'state')).toContain('The model is at work on it: 1 tool call since then')
    expect(section(session, 'results')).toBe('')
  })

  it('says that the model has answered, also after a command that the user typed since', () => {
    const session = new CodingSession()
    session.says('Test it.')
    session.answers('All tests pass.')
    session.says('<bash-input>git status</bash-input>')
    expect(section(session, 'state')).toContain('The model has answered it, see Key results.')
  })

  it('has the commands of a session in which nothing else was typed', () => {
    const session = new CodingSession()
    session.says(
      '<command-message>x</command-message>\n<command-name>/fix</command-name>\n<command-args>the login</command-args>',
    )
    const line = '- 2023-11-14 22:13 command: "/fix the login"'
    expect(section(session, 'state')).toBe(`Typed by the user:\n${line}`)
    expect(section(session, 'task')).toBe(`Other requests, oldest first:\n${line}`)
    expect(section(session, 'title')).toBe('/fix the login')
  })

  it('has a message that was sent while the model worked as the latest instruction, and what was typed before it', () => {
    const session = new CodingSession()
    session.says('Write the docs.')
    session.runs('ls docs', 'index.md')
    session.builder.attachment({ type: 'queued_command', prompt: 'and the changelog' })
    session.builder.attachment({
      type: 'queued_command',
      commandMode: 'task-notification',
      prompt: 'build done',
    })
    const instruction = [
      'Latest instruction:\n> and the changelog',
      'It was sent while the model worked. Typed before it:\n- 2023-11-14 22:13 "Write the docs."',
    ]
    expect(section(session, 'state')).toBe([...instruction, 'The model has not begun with it.'].join('\n\n'))
    session.runs('git log', 'a1b2c3')
    expect(section(session, 'state')).toContain('1 tool call since then, the last one Bash `git log`')
    session.says('Thanks. Now a release.')
    expect(section(session, 'state')).toContain('Latest instruction:\n> Thanks. Now a release.\n\nThe model')
    expect(section(session, 'task')).toContain('sent while the model worked: "and the changelog"')
  })

  it('says that the model has begun once it responds to a message, not while an older response goes on', () => {
    const session = new CodingSession()
    const { builder } = session
    session.says('Write the docs.')
    const call = { type: 'tool_use', id: 'one', name: 'Bash', input: { command: 'ls' } } as const
    builder.assistant('first', [{ type: 'text', text: 'I look.' }])
    builder.attachment({ type: 'queued_command', prompt: 'and the changelog, in full' })
    builder.assistant('first', [call])
    builder.result('one', 'docs')
    expect(section(session, 'state')).toContain('The model has not begun with it.')
    builder.assistant('second', [{ type: 'thinking', thinking: 'hm', signature: 's' }])
    expect(section(session, 'state')).toContain('The model is at work on it.')
  })

  it.each(['yes', 'continue', '好的'])('has a short reply with the sentence that it answers: %s', (reply) => {
    const session = new CodingSession()
    session.says('Plan it.')
    session.answers('Three steps. I begin with the schema.')
    session.says(reply)
    const answered = 'Three steps. I begin with the schema.'
    expect(section(session, 'state')).toContain(
      `Latest instruction:\n> ${reply}\n\nIt answers, in the words of the model:\n> ${answered}`,
    )
    session.says('Now write down all of it in the documents.')
    expect(section(session, 'task')).toContain(`"${reply}", answering "${answered}"`)
  })

  it('still waits for the result of a call while which the user sent a message', () => {
    const session = new CodingSession()
    session.says('Test it.')
    const input = { command: 'npm test' }
    session.builder.assistant('msg', [{ type: 'tool_use', id: 'open', name: 'Bash', input }])
    session.builder.attachment({ type: 'queued_command', prompt: 'and lint it' })
    expect(section(session, 'state')).toContain('- No result yet: Bash `npm test`')
  })
})
