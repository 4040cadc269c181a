/** `tidemark chat` for a user in a terminal, and in the folder that a session belongs to. */
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stripVTControlCharacters } from 'node:util'
import { echo } from '@tidemark/simulator'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createChatWorld, playSteps } from './chat-world.ts'

describe('in a terminal', () => {
  const WRITE = { Write: { file_path: 'b.txt', content: 'new' } }

  it('the user is asked for a permission, also with -p', async () => {
    const { answer, read } = await createChatWorld(playSteps(WRITE, 'Done.'))
    const { questions, out, err } = await answer('Write it.', 'y')
    expect(err).toMatch(/Create b\.txt\?\n {2}1 \+ new\n/)
    expect(questions).toEqual(['[y/N, or why not] '])
    expect([out, read('b.txt')]).toEqual(['Done.\n', 'new'])
  })

  it('the session and its cost are told at the end, on standard error', async () => {
    const { answer } = await createChatWorld(echo)
    const { out, err } = await answer('Hello.')
    expect(out).toBe('Hello.\n')
    expect(stripVTControlCharacters(err)).toMatch(/^session chat-[\w-]+, cost <?\$[\d.]+\n$/)
    expect(err).toContain('\u001b[2m')
  })

  it('what the user types instead of y refuses the call, and the model is told', async () => {
    const { answer, read, lastResults } = await createChatWorld(playSteps(WRITE, 'Done.'))
    await answer('Write it.', 'use c.txt instead')
    expect(lastResults()).toEqual([expect.stringContaining('The user said: use c.txt instead')])
    expect(read('b.txt')).toBeNull()
  })

  it('the whole command is shown, also a long one and what a terminal would execute', async () => {
    const command = `echo ${'word '.repeat(600)};  touch HIDDEN \u001b]0;x\u0007`
    const { answer, read } = await createChatWorld(playSteps({ Bash: { command } }, 'Done.'))
    const { err } = await answer('Run it.', 'n')
    expect(err).toContain(
      `Run this command?\n  echo ${'word '.repeat(600)};  touch HIDDEN \\u{1b}]0;x\\u{7}\n`,
    )
    expect(read('HIDDEN')).toBeNull()
  })

  it('a question that is not answered ends the run: nothing more is asked, and the model is not called again', async () => {
    const play = playSteps(WRITE, { Bash: { command: 'ls' } }, 'Done.')
    let calls = 0
    const { answer } = await createChatWorld((...given) => {
      calls += 1
      return play(...given)
    })
    const { questions, code, err } = await answer('Write it.')
    expect([questions.length, code, calls]).toEqual([1, 1, 1])
    expect(err).toMatch(/tidemark: Interrupted\. To go on: /)
  })

  it('a question of the model is answered by number or in words', async () => {
    const questions = [
      { question: 'Which?', options: [{ label: 'Redis' }, { label: 'Files' }] },
      { question: 'Why?', options: [] },
    ]
    const { answer, lastResults } = await createChatWorld(playSteps({ AskUser: { questions } }, 'Done.'))
    await answer('Ask.', '2', 'It is simpler.')
    expect(lastResults().join()).toMatch(/Files[\s\S]*It is simpler\./)
  })
})

it('a model that the provider does not have is told as such', async () => {
  const { run } = await createChatWorld(() => {
    throw new Error('not asked')
  })
  const server = createServer((_, response) => {
    const error = { type: 'not_found_error', message: 'model: nosuch' }
    response.writeHead(404, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ type: 'error', error }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const printed = await run('chat', '-p', 'Go.', '--model', 'nosuch', '--window', '100000', '--base-url', url)
  expect(printed.code).toBe(1)
  expect(printed.err).toMatch(/^tidemark: The provider has not found the model nosuch\. To go on: /m)
})

it('a session is not continued in another folder by mistake', async () => {
  const { run, pipe, folder, path } = await createChatWorld(echo)
  const { lines } = await run('chat', '-p', 'Hello.', '--output-format', 'json')
  mkdirSync(path('sub'))
  const id = String(lines[0].session_id)
  expect(await pipe('', { resume: id, prompt: 'More.', cwd: path('sub') })).toMatchObject({
    code: 1,
    err: `tidemark: the session ${id} belongs to ${folder}. Go on there, or give --cwd ${folder}.\n`,
  })
})

it('JSON lines are read as prompts also if -p is given without text', async () => {
  const { pipe } = await createChatWorld(echo)
  const line = JSON.stringify({ type: 'user', message: { role: 'user', content: 'One' } })
  expect(await pipe(`${line}\n`, { prompt: true, inputFormat: 'stream-json' })).toMatchObject({
    out: 'One\n',
  })
})
