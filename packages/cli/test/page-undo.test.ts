/** Undo from the page: of a closed session, and in the process that has it open (`chat --ui`, `watch --ui`), where the next request shows it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCoder, createSimulator, type SimulatorServer, serve, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import type { Browser, Page } from 'playwright-core'
import { anthropic, createTidemark } from 'tidemark'
import { findNamedLogs } from 'tidemark/internal'
import { inspectFiles } from 'tidemark/logs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { TIDEMARK_COMMAND } from './command-line.ts'
import { closePage, findBrowser, launchBrowser, openPage, startUi } from './page-browser.ts'

const executable = findBrowser()
const MODEL = 'claude-sonnet-5-5'
/** In the middle of the first answer only, and not what a summary would keep. */
const SIGN = 'the kettle stands behind the blue door'

interface Running {
  readonly child: ChildProcess
  /** Waits until the command has printed something that matches, and returns its first group. */
  waitFor(pattern: RegExp): Promise<string>
}

function start(home: string, args: readonly string[]): Running {
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TIDEMARK_HOME: home,
    LANG: 'C.UTF-8',
    ANTHROPIC_API_KEY: 'any',
  }
  const child = spawn(process.execPath, [...TIDEMARK_COMMAND, ...args], { env, cwd: home })
  let printed = ''
  const listeners = new Set<() => void>()
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk: Buffer) => {
      printed += String(chunk)
      for (const listener of listeners) listener()
    })
  onTestFinished(() => void child.kill('SIGKILL'))
  const waitFor = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const [, found] = pattern.exec(printed) ?? []
        if (found !== undefined) resolve(found)
      }
      listeners.add(look)
      child.once('exit', (code) => reject(new Error(`It ended with ${code}: ${printed}`)))
      look()
    })
  return { child, waitFor }
}

interface World {
  readonly home: string
  readonly simulator: SimulatorServer
  /** The messages of the newest request for an answer, as JSON. */
  readonly lastRequest: () => string
}

/** A provider with answers of about 6,000 tokens. The first of them has the sign. */
async function createWorld(): Promise<World> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-page-undo-'))
  let last = ''
  const simulator = await serve({
    script: withSummaries(({ messages }, { turn }) => {
      last = JSON.stringify(messages)
      const filler = Array.from({ length: 250 }, (_, line) => `Step ${turn}.${line}: we look at it again.`)
      const text = [...filler, turn === 0 ? SIGN : 'nothing more', ...filler].join('\n')
      return { blocks: [{ type: 'text', text }] }
    }),
  })
  onTestFinished(async () => {
    await simulator.close()
    rmSync(home, { recursive: true, force: true, maxRetries: 10 })
  })
  return { home, simulator, lastRequest: () => last }
}

/** Presses the button and confirms, after what happens while it asks. Returns what the page then says. */
async function undoOnPage(page: Page, whileAsked: () => Promise<void> = async () => {}): Promise<string> {
  await page.getByRole('link', { name: 'What left', exact: true }).click()
  await page.getByRole('button', { name: /Undo the newest/ }).click()
  await whileAsked()
  await page.getByRole('button', { name: 'Undo it' }).click()
  const status = page.locator('.undo [role=status]')
  await expect.poll(() => status.innerText()).not.toMatch(/^(Undoing…)?$/)
  return status.innerText()
}

/** Whether the log has an undo of its only compaction. */
async function isUndone(log: string): Promise<boolean | undefined> {
  const { sessions } = await inspectFiles((await findNamedLogs([log])).logs)
  return sessions[0]?.compactions[0]?.isUndone
}

describe.skipIf(executable === null)('undo on the page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '')
  })
  afterAll(() => browser.close())

  it('under chat --ui: the question stays while the session grows; the next request has the conversation again', async () => {
    const { home, simulator, lastRequest } = await createWorld()
    const tide = createTidemark({
      model: anthropic(MODEL, { apiKey: 'any', baseUrl: simulator.url }),
      home,
    })
    const session = await tide.open('talk')
    for (const prompt of ['Begin.', 'Go on.', 'Go on.', 'Go on.', 'Go on.'])
      for await (const _ of session.run(prompt, {}));
    expect(await session.compact()).toMatchObject({ ok: true })
    await tide.close()
    const chat = start(home, [
      ...['chat', '--ui', '--resume', 'talk', '--model', MODEL, '--base-url', simulator.url],
      ...['--input-format', 'stream-json', '--output-format', 'stream-json'],
    ])
    const say = (content: string): void =>
      void chat.child.stdin?.write(
        `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`,
      )
    const { page, faults } = await openPage(browser, await chat.waitFor(/The page: (\S+)/))
    say('What is left?')
    await chat.waitFor(/("type":"result")/)
    expect([lastRequest().includes('What is left?'), lastRequest().includes(SIGN)]).toEqual([true, false])
    const growSession = async (): Promise<void> => {
      const before = await page.locator('.headline').innerText()
      say('What else?')
      await expect.poll(() => page.locator('.headline').innerText(), { timeout: 10_000 }).not.toBe(before)
    }
    expect(await undoOnPage(page, growSession)).toBe('It is undone.')
    say('And now?')
    await expect.poll(() => lastRequest().includes('And now?'), { timeout: 10_000 }).toBe(true)
    expect([lastRequest().includes('What is left?'), lastRequest().includes(SIGN)]).toEqual([true, true])
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('under watch --ui: the next request of the client has what it had compacted', async () => {
    const { home, simulator, lastRequest } = await createWorld()
    const watch = start(home, ['watch', '--ui', '--port', '0', '--upstream-openai', simulator.url])
    const baseURL = await watch.waitFor(/(http:\/\/127\.0\.0\.1:\d+\/[\w-]{20,}\/v1)/)
    const client = new OpenAI({ apiKey: 'any', baseURL, maxRetries: 0 })
    let items: OpenAI.Responses.ResponseInputItem[] = []
    const ask = async (item: OpenAI.Responses.ResponseInputItem): Promise<void> => {
      items.push(item)
      const { output } = await client.responses.create({ model: 'gpt-5.4', store: false, input: items })
      items.push(...(output as OpenAI.Responses.ResponseInputItem[]))
    }
    for (const content of ['Begin.', 'Go on.', 'Go on.', 'Go on.', 'Go on.'])
      await ask({ role: 'user', content })
    // Asks Tidemark for a compaction, as Codex does, and goes on with what it answers.
    await ask({ type: 'compaction_trigger' } as never)
    items = items.slice(-1)
    await ask({ role: 'user', content: 'What is left?' })
    expect([lastRequest().includes('What is left?'), lastRequest().includes(SIGN)]).toEqual([true, false])
    const { page, faults } = await openPage(browser, await watch.waitFor(/The page: (\S+)/))
    expect(await undoOnPage(page)).toBe('It is undone.')
    await ask({ role: 'user', content: 'And now?' })
    expect([lastRequest().includes('And now?'), lastRequest().includes(SIGN)]).toEqual([true, true])
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('undoes the newest compaction of a closed session, and names the holder of an open one', async () => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-page-home-'))
    const coder = createCoder({ turns: 6 })
    const { fetch } = createSimulator({ script: withSummaries(coder.script) })
    const tide = createTidemark({ model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }), home })
    const session = await tide.open('undo-me')
    for await (const _ of session.run('Fix the login page.', {
      tools: coder.tools,
      runTool: (call) => String(coder.toolResult(call).content),
    }));
    expect(await session.compact()).toMatchObject({ ok: true })
    const log = join(home, 'sessions', 'undo-me.jsonl')
    const ui = await startUi([log], { TIDEMARK_HOME: home })
    onTestFinished(() => ui.stop())
    const { page, faults } = await openPage(browser, ui.url)
    await page.getByRole('link', { name: 'What left', exact: true }).click()
    const button = page.getByRole('button', { name: 'Undo the newest compaction' })
    await button.waitFor()
    expect(await button.isDisabled()).toBe(true)
    expect(await page.locator('.undo').innerText()).toContain(`process ${process.pid}`)
    await tide.close()
    await page.reload()
    await button.click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await isUndone(log)).toBe(false)
    await button.click()
    await page.getByRole('button', { name: 'Undo it' }).click()
    await expect.poll(() => page.locator('.undo').innerText()).toContain('is undone')
    expect(await isUndone(log)).toBe(true)
    expect(faults).toEqual([])
    await closePage(page)
  })
})
