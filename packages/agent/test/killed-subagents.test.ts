/** `tidemark chat` as a process that is killed while its subagents work: nothing of them is lost. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isFullRun } from '@tidemark/core/testing'
import { expect, it, onTestFinished } from 'vitest'
import { TIDEMARK_COMMAND } from './simulate-process.ts'
import {
  createSubagentWorld,
  listAgentLogs,
  readLastResults,
  type SubagentWorld,
  task,
} from './subagent-world.ts'

function countAgentsThatRead({ home }: SubagentWorld, id: string): number {
  const folder = join(home, 'sessions', id, 'subagents', 'sessions')
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) =>
      name.endsWith('agent.json') &&
      JSON.parse(readFileSync(join(folder, name), 'utf8')).filesRead.length > 0,
  ).length
}

const PARTS = ['one', 'two', 'three', 'four', 'five']

function startChat({ env, folder }: SubagentWorld, ...args: readonly string[]): ChildProcess {
  const options = ['--permission-mode', 'allow-all', '--output-format', 'json', '--cwd', folder]
  const child = spawn(process.execPath, [...TIDEMARK_COMMAND, 'chat', ...args, ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

it('five subagents, of which two have ended, are killed with the program; the others go on when it is resumed', async () => {
  let isKilled = false
  const hanging = new Set<string>()
  const world = await createSubagentWorld(async ({ name, count, text }) => {
    const part = /PART (\w+)\./.exec(text)?.[1] ?? ''
    if (name !== 'main') {
      if (count === 0) return { Read: { file_path: `${part}.txt` } }
      if (!isKilled && !['one', 'two'].includes(part)) {
        hanging.add(part)
        await new Promise(() => {})
      }
      return `RESULT ${part}.`
    }
    if (!isKilled) return { Task: PARTS.map((each) => task('explore', each)) }
    const ids = new Set([...text.matchAll(/(agent-\w+) \(explore, interrupted\)/g)].map(([, id]) => id))
    const resumed = [...ids].map((id) => ({ description: 'Go on', prompt: 'Go on.', resume: id }))
    return text.includes('RESULT five') ? 'All have ended.' : { Task: resumed }
  })
  for (const part of PARTS) world.write(`${part}.txt`, part)
  const first = startChat(world, '-p', 'Go.')
  await expect.poll(() => hanging.size).toBe(3)
  const [id = ''] = readdirSync(join(world.home, 'sessions')).flatMap(
    (name) => /^(.*)\.jsonl$/.exec(name)?.[1] ?? [],
  )
  const log = join(world.home, 'sessions', `${id}.jsonl`)
  await expect.poll(() => readFileSync(log, 'utf8').match(/RESULT (one|two)/g)?.length).toBe(2)
  // What an agent has done is stored beside its log, a little later than the log.
  await expect.poll(() => countAgentsThatRead(world, id)).toBe(5)
  const ended = once(first, 'exit')
  first.kill('SIGKILL')
  await ended
  isKilled = true

  const second = startChat(world, '--resume', id, '-p', '')
  let out = ''
  second.stdout?.on('data', (chunk) => {
    out += chunk
  })
  expect((await once(second, 'close'))[0]).toBe(0)
  const result = JSON.parse(out)
  expect(result).toMatchObject({ subtype: 'success', result: 'All have ended.' })
  // The model was told of each agent that was interrupted, once, with what it had done.
  const told = JSON.stringify(world.requests.main?.[1]?.messages)
  expect(told.match(/\(explore, interrupted\)/g)).toHaveLength(3)
  expect(told).toMatch(/- files read: [^-]*three\.txt/)
  expect(readLastResults(world.requests.main?.[2]).filter((text) => text.startsWith('RESULT'))).toHaveLength(
    3,
  )
  // They went on with their own conversations, and none was started twice.
  expect(listAgentLogs(world, id)).toHaveLength(5)
  for (const part of ['three', 'four', 'five']) {
    const texts = JSON.stringify(world.requests[`explore ${part}`]?.at(-1)?.messages)
    expect(texts.match(/\.txt/g)?.length).toBeGreaterThan(0)
    expect(world.requests[`explore ${part}`]).toHaveLength(3)
  }
  expect(result.subagents).toHaveLength(5)
  expect(new Set(result.subagents.map(({ status }: { status: string }) => status))).toEqual(
    new Set(['finished']),
  )
  expect(world.server.simulator.requests.filter(({ status }) => status >= 400)).toEqual([])
})

it.runIf(isFullRun())(
  'subagents that are killed again and again, at any moment, end with one result each',
  async () => {
    const FILES = 6
    const kills: number[] = []
    const world = await createSubagentWorld(async ({ name, text }) => {
      const part = /PART (\w+)\./.exec(text)?.[1] ?? ''
      if (name !== 'main') {
        await wait(40)
        const next = Array.from({ length: FILES }, (_, index) => index).find(
          (index) => !text.includes(`${part}-${index}.txt`),
        )
        return next === undefined ? `RESULT ${part}.` : { Read: { file_path: `${part}-${next}.txt` } }
      }
      const missing = PARTS.filter((each) => !text.includes(`RESULT ${each}.`))
      if (missing.length === 0) return 'All have ended.'
      const calls = missing.map((each) => {
        const id = [...text.matchAll(/(agent-\w+) \(explore, \w+\): Part (\w+)/g)].findLast(
          ([, , known]) => known === each,
        )?.[1]
        return { ...task('explore', each), ...(id === undefined ? {} : { resume: id }) }
      })
      return { Task: calls }
    })
    for (const part of PARTS)
      for (let index = 0; index < FILES; index += 1) world.write(`${part}-${index}.txt`, part)
    const sessions = join(world.home, 'sessions')
    const findId = (): string | undefined =>
      (existsSync(sessions) ? readdirSync(sessions) : []).flatMap(
        (name) => /^(.*)\.jsonl$/.exec(name)?.[1] ?? [],
      )[0]
    for (let kill = 0; kill < 5; kill += 1) {
      const id = findId()
      const before = Object.keys(world.requests).length + (world.requests.main?.length ?? 0)
      const chat = startChat(world, ...(id === undefined ? ['-p', 'Go.'] : ['--resume', id, '-p', '']))
      const countRequests = (): number =>
        Object.keys(world.requests).length + (world.requests.main?.length ?? 0)
      await expect.poll(countRequests).toBeGreaterThan(before)
      const delay = Math.random() * 250
      kills.push(Math.round(delay))
      await wait(delay)
      const ended = once(chat, 'exit')
      chat.kill('SIGKILL')
      await ended
    }
    console.log(`killed after ${kills.join(', ')} ms`)
    const last = startChat(world, '--resume', findId() ?? '', '-p', '')
    let out = ''
    last.stdout?.on('data', (chunk) => {
      out += chunk
    })
    expect((await once(last, 'close'))[0]).toBe(0)
    const { result, subagents } = JSON.parse(out)
    expect(result).toBe('All have ended.')
    const finished = subagents.filter(({ status }: { status: string }) => status === 'finished')
    expect([subagents.length, finished.length]).toEqual([5, 5])
    expect(world.server.simulator.requests.filter(({ status }) => status >= 400)).toEqual([])
  },
)
