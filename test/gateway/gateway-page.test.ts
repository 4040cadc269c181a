/** The page of the gateway in a real browser, on a real Postgres: what each key sees, and that its figures are those of the bill. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { type OutgoingHttpHeaders, request } from 'node:http'
import { deleteSession, listAudit, listKeys, revokeKey } from '@tidemark/gateway'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { SessionList, TeamFigures } from 'tidemark/report'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TIDEMARK_COMMAND } from '../../packages/cli/test/command-line.ts'
import { ATTACK } from '../../packages/cli/test/hostile-log.ts'
import {
  closePage,
  findBrowser,
  launchBrowser,
  openPage,
  type WatchedPage,
} from '../../packages/cli/test/page-browser.ts'
import { listFaintTexts, measureOverflow } from '../../packages/cli/test/page-look.ts'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { startGatewayProcess } from './gateway-process.ts'
import { type GatewayWorld, SdkAgent, useGatewayWorlds } from './gateway-world.ts'

const executable = findBrowser()
const missing = explainMissingPostgres()

describe.skipIf(missing !== null || executable === null)('the page of the gateway', () => {
  const createWorld = useGatewayWorlds('suite')
  let browser: Browser
  // One team for all tests: most of what this file takes is its work. No test needs what another one has left, and those
  // that change a key or a session come last.
  let team: Team
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '')
    team = await createTeam(createWorld)
  })
  afterAll(async () => {
    await browser?.close()
    await team?.stop()
  })

  it('shows a viewer the sessions of all keys, with figures that equal the bill and keys list', async () => {
    const { world, url } = team
    const { page, faults } = await signIn(browser, url, team.keys.lead)
    await page.getByRole('heading', { name: 'Costs of all teams' }).waitFor()
    const figures = await waitForFigures(page)
    const keys = (await listKeys(world.pool)).filter(({ isViewer }) => !isViewer)
    expect(figures.keys.map(({ key, usd, spent }) => [key, usd, spent]).toSorted()).toEqual(
      keys.map(({ name, spent }) => [name, spent, spent]).toSorted(),
    )
    for (const parts of [figures.keys, figures.teams, figures.models, figures.days, [figures.total]])
      expect(parts.reduce((sum, { usd }) => sum + usd, 0)).toBeCloseTo(world.readBill(), 8)
    expect(figures.total.calls).toBe(world.simulator.simulator.requests.length)
    expect(figures.teams.map(({ name }) => name)).toEqual(expect.arrayContaining(['search', 'checkout']))
    const text = await page.locator('main').innerText()
    for (const shown of [
      `for ${figures.total.calls} calls of 3 keys`,
      'ann',
      'checkout',
      'claude-sonnet-5-5',
    ])
      expect(text).toContain(shown)

    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(3)
    await page.getByRole('searchbox').fill('checkout')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await page.getByRole('link', { name: /I am cas/ }).click()
    await page.getByRole('slider').waitFor()
    for (const [tab, ready] of [
      ['What left', '.departure'],
      ['Cache', 'section[aria-label=Cache]'],
    ] as const) {
      await page.getByRole('link', { name: tab }).click()
      await page.locator(ready).first().waitFor()
    }
    expect(await page.getByRole('button', { name: /Undo/ }).count()).toBe(0)
    expect(faults).toEqual([])
    expect(await listAudit(world.pool, 1)).toMatchObject([{ actor: 'lead', action: 'page-opened' }])
    await closePage(page)
  })

  it('adds up losses by cause as the sessions have them', async () => {
    const { page } = await signIn(browser, team.url, team.keys.lead)
    const { losses } = await waitForFigures(page)
    const { sessions } = await load<SessionList>(page, '/api/sessions')
    const breaks = sessions.flatMap(({ cacheBreaks }) => cacheBreaks)
    expect(losses.map(({ cause }) => cause)).toContain('tools-changed')
    expect(losses.reduce((sum, loss) => sum + loss.breaks, 0)).toBe(breaks.length)
    expect(losses.reduce((sum, { usd }) => sum + usd, 0)).toBeCloseTo(
      breaks.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0),
      8,
    )
    await page.getByText('tools changed ×').waitFor()
    await closePage(page)
  })

  it('shows another key its own sessions alone, also to one who knows the address of another one', async () => {
    const { url } = team
    const lead = await signIn(browser, url, team.keys.lead)
    const all = (await waitForSessions(lead.page, 3)).sessions
    const searchLead = await signIn(
      browser,
      url,
      await team.world.addKey('search lead', { team: 'search', isViewer: true }),
    )
    const ann = await signIn(browser, url, team.keys.ann)
    const seen = async ({ page }: WatchedPage) => {
      const { sessions } = await load<SessionList>(page, '/api/sessions')
      const { keys, total, teams } = await load<TeamFigures>(page, '/api/team')
      return {
        sessions: sessions.map(({ owner }) => owner?.key).toSorted(),
        keys: keys.map(({ key }) => key).toSorted(),
        teams: teams.length,
        isPart: Math.abs(total.usd - keys.reduce((sum, { usd }) => sum + usd, 0)) < 1e-9,
      }
    }
    expect(await seen(ann)).toEqual({ sessions: ['ann'], keys: ['ann'], teams: 1, isPart: true })
    expect(await seen(searchLead)).toEqual({
      ...{ sessions: ['ann', 'bob'], keys: ['ann', 'bob'], teams: 1, isPart: true },
    })
    const foreign = all.find(({ owner }) => owner?.key === 'cas')?.id ?? ''
    for (const part of [
      '',
      '/left',
      '/request/0',
      '/replay?policy=default',
      '/html',
      '/card',
      '/search?text=a',
    ])
      for (const { page } of [ann, searchLead])
        expect([part, await readStatus(page, `/api/session/${foreign}${part}`)]).toEqual([part, 404])
    expect(await readStatus(lead.page, `/api/session/${foreign}`)).toBe(200)
    for (const { page } of [lead, searchLead, ann]) await closePage(page)
  })

  it('refuses other hosts and sites, requests without a cookie, and every change', async () => {
    const { url } = team
    const viewer = team.keys.lead
    const own = { origin: url }
    const signedIn = await send(url, 'POST', '/api/sign-in', own, JSON.stringify({ key: viewer }))
    const [cookie = ''] = signedIn.headers['set-cookie'] ?? []
    expect(cookie).toMatch(/^tidemark_team_\d+=[\w-]{32}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=\d+$/)
    expect(cookie).not.toContain(viewer)
    const as = { cookie: cookie.split(';')[0] }
    const asked = async (method: string, path: string, headers: OutgoingHttpHeaders, body = '') =>
      (await send(url, method, path, headers, body)).status
    expect(await asked('GET', '/api/sessions', as)).toBe(200)
    expect(await asked('GET', '/api/sessions', {})).toBe(401)
    expect(await asked('GET', '/api/team', { cookie: `${as.cookie}x` })).toBe(401)
    expect(await asked('GET', '/api/sessions', { ...as, host: 'evil.example' })).toBe(403)
    expect(await asked('GET', '/', { host: 'evil.example' })).toBe(403)
    expect(await asked('GET', '/api/sessions', { ...as, origin: 'https://evil.example' })).toBe(403)
    expect(await asked('GET', '/api/sessions', { ...as, 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await asked('POST', '/api/sign-in', {}, JSON.stringify({ key: viewer }))).toBe(403)
    expect(await asked('POST', '/api/sign-in', own, JSON.stringify({ key: ['x'] }))).toBe(401)
    expect(await asked('DELETE', '/api/sessions', { ...as, ...own })).toBe(403)
    const { rows } = await team.world.pool.query('select scope, session from gateway_sessions limit 1')
    const id = createHash('sha256').update(`${rows[0].scope} ${rows[0].session}`).digest('hex').slice(0, 24)
    expect(await asked('GET', `/api/session/${id}`, as)).toBe(200)
    expect(await asked('POST', `/api/session/${id}/undo`, { ...as, ...own }, '{"target":"x"}')).toBe(404)
    const page = await send(url, 'GET', '/', {}, '')
    expect(page.headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
    // The key of a viewer opens the page and nothing else, and is not taken where keys of agents are.
    const call = { 'x-api-key': viewer, 'content-type': 'application/json' }
    expect(await asked('POST', '/v1/messages', call, '{"model":"claude-sonnet-5-5","max_tokens":1}')).toBe(
      403,
    )
    expect(await asked('POST', '/api/sign-out', { ...as, ...own }, '{}')).toBe(200)
    expect(await asked('GET', '/api/sessions', as)).toBe(401)
  })

  it('is legible in light, dark and on a narrow screen, and no wider than it', async () => {
    const { url } = team
    const viewer = team.keys.lead
    const looks: readonly BrowserContextOptions[] = [
      { colorScheme: 'light' },
      { colorScheme: 'dark' },
      { colorScheme: 'light', viewport: { width: 380, height: 800 } },
    ]
    for (const look of looks) {
      const { page, faults } = await openPage(browser, url, look)
      const check = async () =>
        expect([await measureOverflow(page), await listFaintTexts(page)]).toEqual([0, []])
      await page.getByLabel('Key').waitFor()
      await check()
      await page.getByLabel('Key').fill(viewer)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Models' }).waitFor()
      await waitForFigures(page)
      await check()
      await page.getByRole('link', { name: 'Sessions', exact: true }).click()
      await expect.poll(() => page.locator('tbody tr').count()).toBe(3)
      await check()
      expect(faults).toEqual([])
      await closePage(page)
    }
  })

  it('runs nothing of hostile texts in prompts, session ids, names of keys and teams', async () => {
    const { world, url } = team
    await work(new SdkAgent(url, team.keys.ann, world.coder, 'hostile'), ATTACK, 2)
    // No client can choose such names and ids: they are refused, or replaced. The page relies on neither.
    const client = await world.pool.connect()
    const query = (text: string) => client.query(text, [ATTACK])
    try {
      // A report of the session, which may be written at any time, would hold its id.
      await client.query("begin; lock gateway_reports; delete from gateway_reports where session = 'hostile'")
      await query("update tidemark_lines set session = $1 where session = 'hostile'")
      await query("update gateway_sessions set session = $1 where session = 'hostile'")
      await query("update gateway_keys set name = $1, team = $1 where name = 'ann'")
      await query(
        'update gateway_calls set model = $1 where key in (select id from gateway_keys where name = $1)',
      )
      await client.query('commit')
    } finally {
      // Destroyed and not given back: a failure would leave its transaction, and its lock, in the pool.
      client.release(true)
    }
    const { page, faults } = await signIn(browser, url, team.keys.lead)
    await waitForFigures(page)
    await expect.poll(() => page.locator('main').innerText()).toContain('<img src=x')
    const { sessions } = await waitForSessions(page, 4)
    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(4)
    const hostile = sessions.find(({ owner }) => owner?.session === ATTACK)
    await page.goto(`${url}/#/s/${hostile?.id}/tide`)
    await page.getByRole('slider').waitFor()
    await page.getByRole('link', { name: 'Live' }).click()
    await page.getByRole('slider').waitFor()
    expect([faults, await page.evaluate('window.hacked !== undefined')]).toEqual([[], false])
    await closePage(page)
  })

  it('ends with its key, and a deleted session is gone with what was stored about it', async () => {
    const { world, url } = team
    const { page } = await signIn(browser, url, team.keys.bob)
    const [session] = (await waitForSessions(page, 1)).sessions
    const [bob] = (await listKeys(world.pool)).filter(({ name }) => name === 'bob')
    await deleteSession(world.pool, { scope: bob?.id ?? '', session: 'bob-session', actor: 'test' })
    expect(await readStatus(page, `/api/session/${session?.id}`)).toBe(404)
    const { rows } = await world.pool.query('select * from gateway_reports where scope = $1', [bob?.id])
    expect(rows).toEqual([])

    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await page.getByText('No session to show.').waitFor()
    await revokeKey(world.pool, 'bob', 'test')
    expect(await readStatus(page, '/api/sessions')).toBe(401)
    // The page that is open asks for a key by itself.
    await page.getByLabel('Key').fill(team.keys.bob)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This key is unknown or revoked.').waitFor()
    await closePage(page)
  })

  it('behind a proxy with TLS it answers at the address that was given, with a cookie for it alone', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway({ pageUrl: 'https://gateway.example.com/' })
    const key = await world.addKey('ann')
    const host = { host: 'gateway.example.com' }
    const signedIn = await send(
      ...([url, 'POST', '/api/sign-in'] as const),
      { ...host, origin: 'https://gateway.example.com' },
      JSON.stringify({ key }),
    )
    const [cookie = ''] = signedIn.headers['set-cookie'] ?? []
    expect(cookie).toMatch(/^__Host-tidemark_team=.*; HttpOnly; SameSite=Strict; Path=\/; Secure;/)
    const plain = { ...host, origin: 'http://gateway.example.com' }
    expect((await send(url, 'POST', '/api/sign-in', plain, JSON.stringify({ key }))).status).toBe(403)
    expect((await send(url, 'GET', '/', host, '')).status).toBe(200)
  })
})

interface Team {
  readonly world: GatewayWorld
  readonly url: string
  /** The last one is that of a viewer. */
  readonly keys: Readonly<Record<'ann' | 'bob' | 'cas' | 'lead', string>>
  stop(): Promise<void>
}

/**
 * A gateway as a process, with three keys in two teams. The session of the first has lost its cache, that of the last has a
 * compaction.
 */
async function createTeam(createWorld: ReturnType<typeof useGatewayWorlds>): Promise<Team> {
  const world = await createWorld({ turns: 40 })
  const gateway = await startGatewayProcess({
    database: world.url,
    upstream: world.simulator.url,
    command: TIDEMARK_COMMAND,
    args: ['--window', '14000'],
  })
  const { url } = gateway
  const keys = {
    ann: await world.addKey('ann', { team: 'search', budget: 50 }),
    bob: await world.addKey('bob', { team: 'search' }),
    cas: await world.addKey('cas', { team: 'checkout' }),
    lead: addViewer('lead', world.url),
  }
  const ann = new SdkAgent(url, keys.ann, world.coder, 'ann-session')
  await work(ann, 'I am ann. Fix the sums.', 4)
  await work(new SdkAgent(url, keys.bob, world.coder, 'bob-session'), 'I am bob. Fix the sums.', 2)
  await work(new SdkAgent(url, keys.cas, world.coder, 'cas-session'), 'I am cas. Fix the sums.', 30)
  // The first of the tools goes, so that nothing of the cached prefix is left.
  ann.coder = { ...ann.coder, tools: ann.coder.tools.slice(1) }
  for (let step = 0; step < 3; step += 1) await ann.step()
  return { world, url, keys, stop: () => gateway.kill('SIGTERM') }
}

/** Adds a key with the command, and returns it. */
function addViewer(name: string, database: string): string {
  const args = ['gateway', 'keys', 'add', name, '--viewer', '--json', '--database', database]
  const printed = execFileSync(process.execPath, [...TIDEMARK_COMMAND, ...args], { encoding: 'utf8' })
  return (JSON.parse(printed) as { key: string }).key
}

async function work(agent: SdkAgent, prompt: string, steps: number): Promise<void> {
  agent.messages.push({ role: 'user', content: prompt })
  for (let step = 0; step < steps; step += 1) if (!(await agent.step())) return
}

async function signIn(browser: Browser, url: string, key: string): Promise<WatchedPage> {
  const opened = await openPage(browser, url)
  await opened.page.getByLabel('Key').fill(key)
  await opened.page.getByRole('button', { name: 'Sign in' }).click()
  await opened.page.getByRole('button', { name: 'Sign out' }).waitFor()
  return opened
}

/** Asks as the page does, with its cookie. */
function load<T>(page: Page, path: string): Promise<T> {
  return page.evaluate(`fetch(${JSON.stringify(path)}).then((response) => response.json())`)
}

function readStatus(page: Page, path: string): Promise<number> {
  return page.evaluate(`fetch(${JSON.stringify(path)}).then((response) => response.status)`)
}

/** Returns the figures once all logs have been read. */
async function waitForFigures(page: Page): Promise<TeamFigures> {
  await expect.poll(async () => (await load<TeamFigures>(page, '/api/team')).unread).toBe(0)
  return load(page, '/api/team')
}

async function waitForSessions(page: Page, count: number): Promise<SessionList> {
  await expect.poll(async () => (await load<SessionList>(page, '/api/sessions')).sessions.length).toBe(count)
  return load(page, '/api/sessions')
}

function send(
  url: string,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders,
  body: string,
): Promise<{
  readonly status: number
  readonly headers: NodeJS.Dict<string[]> & Record<string, unknown>
  readonly body: string
}> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, headers }, async (response) => {
      let text = ''
      for await (const chunk of response) text += String(chunk)
      resolve({ status: response.statusCode ?? 0, headers: response.headers as never, body: text })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
