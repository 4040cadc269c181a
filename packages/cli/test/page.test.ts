/** The page of `tidemark ui` in a real browser, on a hostile log: every view and control, against what `inspect --json` prints. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import type { SessionReport } from 'tidemark/logs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { TIDEMARK_COMMAND } from './command-line.ts'
import { ATTACK, createHostileLog, HostileLog } from './hostile-log.ts'
import { buildLogLines, writeLog } from './made-up-logs.ts'
import { closePage, findBrowser, launchBrowser, openPage, type ServedPage, startUi } from './page-browser.ts'

const executable = findBrowser()
const folder = mkdtempSync(join(tmpdir(), 'tidemark-page-'))
const hostile = join(folder, 'hostile.jsonl')
const quiet = join(folder, 'quiet.jsonl')
const broken = join(folder, 'broken.jsonl')
const unpriced = writeLog(folder, { name: 'unpriced', model: 'house-model-1' })
writeFileSync(hostile, createHostileLog().text)
writeFileSync(
  quiet,
  new HostileLog('quiet').prompt('A quiet one').answer('Hello.', { read: 0, written: 5_000 }).text,
)

writeFileSync(
  broken,
  new HostileLog('broken')
    .prompt('The provider lost the cache')
    .answer('One.', { read: 0, written: 20_000 })
    .answer('Two.', { read: 20_000, written: 500 })
    .answer('Three.', { read: 0, written: 21_000 }).text,
)

function run(...args: readonly string[]): string {
  return execFileSync(process.execPath, [...TIDEMARK_COMMAND, ...args], { encoding: 'utf8' })
}

function inspect(path: string): SessionReport {
  return JSON.parse(run('inspect', path, '--json')).sessions[0]
}

let hostileReport: SessionReport | undefined

/** What the command prints about the hostile log, which no test changes. */
function inspectHostile(): SessionReport {
  hostileReport ??= inspect(hostile)
  return hostileReport
}

function dollars(amount: number | null): string {
  return amount !== null && amount < 0.005 ? '<$0.01' : `$${(amount ?? 0).toFixed(2)}`
}

/** A server for one test, which ends with it, also if it fails. */
async function serve(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<ServedPage> {
  const ui = await startUi(args, env)
  onTestFinished(() => ui.stop())
  return ui
}

async function isAttacked(page: Page): Promise<boolean> {
  return page.evaluate('window.hacked !== undefined')
}

describe.skipIf(executable === null)('the page in a browser', () => {
  let browser: Browser
  let served: ServedPage
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '')
    served = await startUi([hostile, quiet, broken])
  })
  afterAll(async () => {
    await browser.close()
    await served.stop()
  })

  it('lists sessions with the figures of inspect, sorts and filters them, and keeps no token in the address', async () => {
    const { page, faults } = await openPage(browser, served.url)
    const row = page.getByRole('row', { name: /Fix the login/ })
    await row.waitFor()
    expect(new URL(page.url()).search).toBe('')
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    const report = inspectHostile()
    const text = await row.innerText()
    for (const figure of [
      dollars(report.costUsd),
      dollars(report.money.lostToBreaks),
      String(report.apiCalls),
    ])
      expect(text).toContain(figure)
    const firstRow = () => page.locator('tbody tr').first().innerText()
    await page.getByRole('button', { name: 'Cost' }).click()
    await expect.poll(firstRow).toContain('Fix the login')
    await page.getByRole('button', { name: 'Cost' }).click()
    await expect.poll(firstRow).toContain('A quiet one')
    await page.getByRole('searchbox').fill('quiet')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    expect([faults, await isAttacked(page)]).toEqual([[], false])
    await closePage(page)
  })

  it('adds up the cost by day, project, model and program, of the sessions that the filter leaves', async () => {
    const { page, faults } = await openPage(browser, served.url)
    const groups = page.getByRole('region', { name: 'Cost by group' })
    await groups.waitFor()
    const { sessions }: { sessions: readonly SessionReport[] } = JSON.parse(
      run('inspect', hostile, quiet, broken, '--json'),
    )
    const spending = sessions.flatMap((session) => session.spending)
    const names = {
      day: new Set(spending.map(({ day }) => day)),
      month: new Set(spending.map(({ day }) => day?.slice(0, 7))),
      model: new Set(spending.map(({ model }) => model)),
      project: new Set(sessions.map(({ project }) => project)),
      program: new Set(sessions.map(({ format }) => format)),
    }
    const rows = groups.getByRole('listitem')
    for (const [grouping, expected] of Object.entries(names)) {
      await groups.getByRole('button', { name: grouping, exact: true }).click()
      await expect.poll(() => groups.locator('[aria-pressed=true]').innerText()).toBe(grouping)
      expect(await rows.count()).toBe(expected.size)
      const [text = ''] = await rows.allInnerTexts()
      expect(text).toContain(dollars(spending.reduce((sum, { pricedUsd }) => sum + pricedUsd, 0)))
      expect(text).toContain(`${spending.reduce((sum, { apiCalls }) => sum + apiCalls, 0)} calls`)
    }
    await groups.getByRole('button', { name: 'day', exact: true }).click()
    await rows.first().getByRole('button').click()
    await expect.poll(() => page.getByRole('searchbox').inputValue()).toMatch(/^2026-03-09$/)
    expect(await page.locator('tbody tr').count()).toBe(sessions.length)
    await page.getByRole('searchbox').fill('quiet')
    await expect.poll(() => rows.first().innerText()).toContain('1 call')
    expect(await rows.first().innerText()).toContain(dollars(inspect(quiet).costUsd))
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('is sorted by a choice where the window is too narrow for headings', async () => {
    const { page, faults } = await openPage(browser, served.url, { viewport: { width: 380, height: 800 } })
    const firstRow = () => page.locator('tbody tr').first().innerText()
    await page.getByLabel('Order by').selectOption('Cost')
    await expect.poll(firstRow).toContain('Fix the login')
    await page.getByLabel('Order by').selectOption('Session')
    await expect.poll(firstRow).toContain('The provider lost the cache')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('says why a list is empty: nothing was found, or nothing has the text of the filter', async () => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-page-empty-'))
    const places = { CLAUDE_CONFIG_DIR: home, CODEX_HOME: home, TIDEMARK_HOME: home }
    const empty = await serve([], { HOME: home, ...places })
    for (const [url, sought, said] of [
      [empty.url, '', 'No session of Claude Code, Codex or Tidemark was found.'],
      [served.url, 'nowhere to be found', 'No session has this text.'],
    ] as const) {
      const { page, faults } = await openPage(browser, url)
      await page.getByRole('searchbox').fill(sought)
      await page.getByText(said).waitFor()
      expect([await page.getByRole('table').count(), await page.locator('.headline').count()]).toEqual([0, 0])
      expect(faults).toEqual([])
      await closePage(page)
    }
  })

  it('keeps the order and the filter of the list, and the replays of a session, while other views are open', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('button', { name: 'Cost' }).click()
    await page.getByRole('searchbox').fill('o')
    await page.getByRole('link', { name: /The provider lost the cache/ }).click()
    await page.getByRole('link', { name: 'What if' }).click()
    await page.getByRole('checkbox', { name: /Economy/ }).uncheck()
    await page.getByRole('button', { name: 'Replay this session' }).click()
    await page.getByRole('link', { name: 'Tide', exact: true }).click()
    await page.getByRole('slider').waitFor()
    await page.getByRole('link', { name: 'What if' }).click()
    await page.getByRole('button', { name: 'Replay this session' }).waitFor()
    const outcomes = page.locator('.outcomes')
    await expect.poll(() => outcomes.innerText()).toContain('Like Claude Code')
    expect(await outcomes.innerText()).not.toContain('Economy')
    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await expect.poll(() => page.locator('th[aria-sort=descending]').innerText()).toContain('Cost')
    expect(await page.getByRole('searchbox').inputValue()).toBe('o')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('shows how long a response was, also if the log has only the start of its stream', async () => {
    const log = join(folder, 'started.jsonl')
    const lines = buildLogLines({ name: 'started', answers: ['started-1'] }).map((line) =>
      JSON.stringify(line)
        .replace('Done.', 'A long answer in plain words. '.repeat(100))
        .replace('"output_tokens":20', '"output_tokens":1'),
    )
    writeFileSync(log, lines.map((line) => `${line}\n`).join(''))
    const { outputTokensEstimated: tokens } = inspect(log)
    expect(tokens).toBeGreaterThan(500)
    const { page, faults } = await openPage(browser, (await serve([log])).url)
    await expect.poll(() => page.locator('.request-card').innerText()).toContain(` ${tokens} out`)
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('says once of which model no price is known, and shows no dollars of it', async () => {
    const { page, faults } = await openPage(browser, (await serve([unpriced])).url)
    await page.getByRole('slider').waitFor()
    expect(await page.locator('.headline').innerText()).toBe(
      '2 calls of unknown cost. No prices are known of house-model-1.',
    )
    expect(await page.getByRole('list', { name: 'Legend' }).innerText()).not.toContain('Dollars')
    expect(await page.locator('.figures .good').count()).toBe(0)
    await page.getByRole('link', { name: 'What if' }).click()
    await page.getByRole('button', { name: 'Replay this session' }).click()
    await page.getByRole('alert').first().waitFor()
    await page.getByRole('button', { name: 'Replay this session' }).waitFor()
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([expect.stringContaining('house-model-1')])
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('shows what filled the context: by kind, by tool, the largest blocks and what was read again', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    await page.getByRole('link', { name: 'What filled it' }).click()
    const view = page.getByRole('region', { name: 'What filled the context' })
    await view.waitFor()
    const { byTool, largest, duplicateReads, requests } = inspectHostile()
    const tools = view.locator('.card', { hasText: 'By tool' }).locator('tbody tr')
    await tools.first().waitFor()
    expect(await tools.count()).toBe(byTool.length)
    const [first] = byTool
    expect((await tools.first().innerText()).split('\t').slice(0, 2)).toEqual([
      first?.tool,
      String(first?.calls),
    ])
    const blocks = view.locator('.card', { hasText: 'The largest blocks' }).getByRole('listitem')
    expect(await blocks.count()).toBe(largest.length)
    const again = view.locator('.card', { hasText: 'Files read more than once' }).getByRole('row')
    expect(await again.count()).toBe(duplicateReads.length)
    expect(await again.first().innerText()).toContain(duplicateReads[0]?.path)
    const shares = await view.locator('.bars .number').allInnerTexts()
    const system = requests.reduce((sum, { content }) => sum + (content.system ?? 0), 0)
    const sent = requests.reduce((sum, { tokens }) => sum + tokens, 0)
    expect(shares[0]).toBe(`${Math.round((100 * system) / sent)}%`)
    expect([faults, await isAttacked(page)]).toEqual([[], false])
    await closePage(page)
  })

  it('compares other policies with the recording without the cache breaks that a replay leaves out', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /The provider lost the cache/ }).click()
    await page.getByRole('link', { name: 'What if' }).click()
    await page.getByRole('button', { name: 'Replay this session' }).click()
    await page.getByRole('button', { name: 'Replay this session' }).waitFor()
    const { recorded } = JSON.parse(run('replay', broken, '--json')).sessions[0]
    expect(recorded.breaksUsd).toBeGreaterThan(0.05)
    const compared = page.locator('.outcomes > div', { hasText: 'comparable' })
    expect(await compared.locator('.number').innerText()).toBe(dollars(recorded.usd - recorded.breaksUsd))
    expect(await compared.innerText()).toContain(`without ${dollars(recorded.breaksUsd)}`)
    expect(await page.locator('section .headline').innerText()).toContain('No')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('shows the tide chart, moves by keyboard, zooms, and opens the exact content of a request', async () => {
    const { page, faults } = await openPage(browser, served.url)
    const report = inspectHostile()
    await page.getByRole('link', { name: /Fix the login/ }).click()
    const chart = page.getByRole('slider')
    await chart.waitFor()
    const { requests } = report
    await chart.focus()
    await page.keyboard.press('Home')
    await expect.poll(() => chart.getAttribute('aria-valuenow')).toBe('1')
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => chart.getAttribute('aria-valuetext')).toContain('Request 2')
    await page.keyboard.press('End')
    await expect.poll(() => chart.getAttribute('aria-valuenow')).toBe(String(requests.length))
    expect(await page.locator('.flag-break text').allTextContents()).toEqual([
      dollars(report.cacheBreaks[0]?.costUsd ?? null),
    ])
    expect(await page.locator('.flag-compaction text').allTextContents()).toEqual([
      dollars(report.compactions[0]?.costUsd ?? null),
    ])
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await expect.poll(() => page.locator('.range').first().innerText()).toContain('of 15')
    await expect.poll(() => chart.getAttribute('aria-valuemin')).not.toBe('1')
    for (const name of ['Earlier', 'Later', 'Zoom out', 'All']) {
      const button = page.getByRole('button', { name }).first()
      if (await button.isEnabled()) await button.click()
    }
    await chart.focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: /^Request/ })
    await dialog.getByRole('checkbox').uncheck()
    const blocks = dialog.locator('.blocks').first().locator('summary')
    await blocks.first().click()
    await expect.poll(() => dialog.locator('pre').first().innerText()).toContain(ATTACK)
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByText('All requests as a table').click()
    await expect.poll(() => page.locator('.request-table tbody tr').count()).toBe(requests.length)
    await page.getByRole('button', { name: /Colours/ }).click()
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light')
    expect([faults, await isAttacked(page)]).toEqual([[], false])
    await closePage(page)
  })

  it('shows what left beside the summary, finds what is gone, and marks what was needed again', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    await page.getByRole('link', { name: 'What left', exact: true }).click()
    const card = page.locator('.departure')
    await card.waitFor()
    expect(await card.innerText()).toContain('The user wants the login fixed.')
    expect(await card.innerText()).toContain('read again at request 14')
    const [needed, bad] = await page.evaluate<readonly string[]>(
      `['.opening em', 'p .bad'].map((path) => getComputedStyle(document.querySelector('.departure ' + path)).color)`,
    )
    expect(needed).toBe(bad)
    await card.getByRole('checkbox').check()
    await expect.poll(() => card.locator('.opening').count()).toBe(2)
    await page.getByRole('searchbox').fill('needle5')
    await page.getByRole('button', { name: 'Search' }).click()
    const match = page.locator('.gone-search .opening')
    await match.first().waitFor()
    expect(await match.count()).toBe(1)
    await match.first().locator('summary').click()
    await expect.poll(() => match.first().locator('pre').innerText()).toContain(ATTACK)
    await page.getByRole('link', { name: 'Cache', exact: true }).click()
    const report = inspectHostile()
    await page.locator('.breaks').waitFor()
    const rows = page.locator('.breaks tbody tr')
    expect(await rows.count()).toBe(report.cacheBreaks.length)
    expect(await rows.first().innerText()).toContain(
      report.cacheBreaks[0]?.tokensRewritten.toLocaleString('en-US'),
    )
    await page.getByRole('combobox').selectOption('time')
    expect([faults, await isAttacked(page)]).toEqual([[], false])
    await closePage(page)
  })

  it('leads from where the money went, and from a compaction, to the view that explains it', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    const current = () => page.locator('.tabs [aria-current]').innerText()
    await page.getByRole('link', { name: 'Lost to cache breaks' }).click()
    await expect.poll(current).toBe('Cache')
    await page.getByRole('link', { name: 'Context carried along' }).click()
    await expect.poll(current).toBe('What filled it')
    await page.getByRole('link', { name: 'Tide', exact: true }).click()
    const chart = page.getByRole('slider')
    await chart.focus()
    await page.keyboard.press('End')
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: /^Request 14/ })
    await dialog.locator('.flag-compaction').getByRole('link', { name: 'See what left' }).click()
    await expect.poll(current).toBe('What left')
    await expect
      .poll(async () => (await page.locator('.departure').boundingBox())?.y ?? Number.NaN)
      .toBeLessThan(200)
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('replays the session under the chosen policies, at the costs that replay prints', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    await page.getByRole('link', { name: 'What if' }).click()
    await page.getByRole('checkbox', { name: /Like Claude Code/ }).uncheck()
    await page.getByRole('checkbox', { name: /Nothing/ }).check()
    await page.getByRole('button', { name: 'Replay this session' }).click()
    await page.getByRole('button', { name: 'Replay this session' }).waitFor()
    const printed = JSON.parse(run('replay', hostile, '--policy', 'default,economy,nothing', '--json'))
    const [{ recorded, policies }] = printed.sessions
    const expected: readonly number[] = [
      recorded.usd,
      recorded.usd - recorded.breaksUsd,
      ...policies.map(({ usd }: { usd: number }) => usd),
    ]
    const bars = page.locator('.outcomes .number')
    await expect.poll(() => bars.allInnerTexts()).toEqual(expected.map(dollars))
    expect([faults, await isAttacked(page)]).toEqual([[], false])
    await closePage(page)
  })

  it('shows the request under the pointer, zooms by dragging, and opens by a click what was sent', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    const chart = page.getByRole('slider')
    await chart.waitFor()
    const { requests } = inspectHostile()
    const box = await chart.boundingBox()
    if (box === null) throw new Error('The chart has no place.')
    const place = (request: number) => box.x + (box.width * (request + 0.5)) / requests.length
    await page.mouse.move(place(4), box.y + 200)
    await expect.poll(() => page.locator('.request-card h2').innerText()).toContain('Request 5')
    const tip = page.locator('.tip')
    expect(await tip.innerText()).toContain('Request 5')
    expect(await tip.innerText()).toContain(dollars(requests[4]?.costUsd ?? null))
    const [besides, width] = [await tip.boundingBox(), box.x + box.width]
    expect(besides?.x).toBeGreaterThan(place(4))
    expect((besides?.x ?? 0) + (besides?.width ?? 0)).toBeLessThan(width)
    await page.mouse.move(place(4), box.y - 60)
    await expect.poll(() => tip.count()).toBe(0)
    await page.mouse.move(place(2), box.y + 200)
    await page.mouse.down()
    await page.mouse.move(place(9), box.y + 200, { steps: 4 })
    await page.mouse.up()
    await expect.poll(() => page.locator('.range').first().innerText()).toContain('Requests 3 to 10 of 15')
    await page.getByRole('button', { name: 'All', exact: true }).click()
    await chart.click({ position: { x: place(1) - box.x, y: 200 } })
    const dialog = page.getByRole('dialog', { name: 'Request 2' })
    const result = dialog.locator('.blocks').first().locator('.opening', { hasText: 'Read result' })
    await result.locator('summary').click()
    const whole = `export const needle0 = '${ATTACK}'\n`.repeat(40)
    expect((await result.locator('pre').textContent())?.trim()).toBe(whole.trim())
    expect([faults, await isAttacked(page)]).toEqual([[], false])
    await closePage(page)
  })

  it('shows the largest groups and tools first, and all of them when asked', async () => {
    const log = join(folder, 'many.jsonl')
    const many = new HostileLog('many').prompt('Many days')
    for (let day = 0; day < 9; day += 1)
      many.wait(24 * 60).read(`/home/user/${day}.ts`, 'text', { read: 0, written: 5_000 }, `tool${day}`)
    writeFileSync(log, many.text)
    const ui = await serve([log, broken])
    const { page, faults } = await openPage(browser, ui.url)
    const days = page.getByRole('region', { name: 'Cost by group' }).getByRole('listitem')
    await expect.poll(() => days.count()).toBe(7)
    await page.getByRole('button', { name: 'Show all 10' }).click()
    await expect.poll(() => days.count()).toBe(10)
    await page.getByRole('link', { name: /Many days/ }).click()
    await page.getByRole('link', { name: 'What filled it' }).click()
    const tools = page.getByRole('table', { name: 'By tool' }).locator('tbody tr')
    await expect.poll(() => tools.count()).toBe(8)
    await page.getByRole('button', { name: 'Show all 9 tools' }).click()
    await expect.poll(() => tools.count()).toBe(9)
    expect(await page.getByRole('button', { name: /Show all/ }).count()).toBe(0)
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('saves the files that inspect writes: the page without texts, and the picture', async () => {
    const ui = await serve([hostile])
    const { page, faults } = await openPage(browser, ui.url)
    await page.getByRole('slider').waitFor()
    const save = async (name: string): Promise<string> => {
      const saved = page.waitForEvent('download')
      await page.getByRole('link', { name }).click()
      return readFileSync(await (await saved).path(), 'utf8')
    }
    const [html, card] = [join(folder, 'saved.html'), join(folder, 'saved.svg')]
    run('inspect', hostile, '--html', html, '--card', card)
    expect(await save('Save the picture')).toBe(readFileSync(card, 'utf8'))
    expect(await save('Save as one file')).toBe(readFileSync(html, 'utf8'))
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('has the figures of inspect on every view, and leads from a cache break to its request', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    const report = inspectHostile()
    const { costUsd, money, apiCalls, requests, compactions, clearings } = report
    await page.locator('.figures dd').first().waitFor()
    const figures = await page.locator('.figures dd').allInnerTexts()
    expect(figures.slice(0, 3)).toEqual([costUsd, money.lostToBreaks, money.savedByCache].map(dollars))
    expect(figures.slice(5)).toEqual([apiCalls, compactions.length, clearings.length].map(String))
    const parts = await page.locator('.spending b').allInnerTexts()
    const sum = parts.reduce((total, text) => total + Number(text.slice(1)), 0)
    expect(Math.abs(sum - (costUsd ?? 0))).toBeLessThan(0.02)
    expect(await page.locator('.headline').innerText()).toContain(`${dollars(costUsd)} for ${apiCalls} calls`)
    await page.getByText('All requests as a table').click()
    const rows = page.locator('.request-table tbody tr')
    await expect.poll(() => rows.count()).toBe(requests.length)
    const costs = await rows.locator('td:nth-child(5)').allInnerTexts()
    expect(costs).toEqual(requests.map((each) => dollars(each.costUsd)))
    await page.getByRole('link', { name: 'Cache', exact: true }).click()
    await page.locator('.breaks tbody a').first().click()
    const paid = requests.findIndex(({ line }) => line === report.cacheBreaks[0]?.line) + 1
    await expect.poll(() => page.getByRole('slider').getAttribute('aria-valuenow')).toBe(String(paid))
    expect(await page.locator('.request-card').innerText()).toContain('Cache break')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('follows a log that is being written', async () => {
    // Both are live again, however long ago they were written: with one there is nothing to choose.
    for (const log of [hostile, quiet]) utimesSync(log, new Date(), new Date())
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: 'Live' }).click()
    const choice = page.getByRole('combobox')
    const id = await choice.locator('option', { hasText: 'quiet' }).getAttribute('value')
    await choice.selectOption(id)
    const calls = page.locator('.figures div', { hasText: 'Calls' }).locator('dd')
    await expect.poll(() => calls.innerText()).toBe('1')
    const more = new HostileLog('quiet').prompt('A quiet one').answer('Hello.', { read: 0, written: 5_000 })
    more.answer('And another.', { read: 5_000, written: 300 })
    appendFileSync(quiet, `${more.text.trimEnd().split('\n').at(-1)}\n`)
    await expect.poll(() => calls.innerText()).toBe('2')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('is one file without texts, paths and names, which runs from the disk; with texts if asked for', async () => {
    const out = join(folder, 'out.html')
    const card = join(folder, 'card.svg')
    run('inspect', hostile, '--html', out, '--card', card)
    for (const written of [
      readFileSync(out, 'utf8').split('id="tidemark-data">')[1] ?? '',
      readFileSync(card, 'utf8'),
    ])
      expect(
        /hacked|needle|part-1|\/home|Fix the login|hostile/.exec(written.split('</script>')[0] ?? ''),
      ).toBeNull()
    const { page, faults } = await openPage(browser, pathToFileURL(out).href)
    await page.getByRole('slider').waitFor()
    await page.getByRole('heading', { name: 'A session, without its texts' }).waitFor()
    expect(await page.locator('.figures dd').first().innerText()).toBe(dollars(inspectHostile().costUsd))
    // There is no content to open.
    await page.getByRole('slider').click()
    expect(await page.locator('.tip').innerText()).not.toContain('content')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('link', { name: 'What left', exact: true }).click()
    await page.locator('.departure').waitFor()
    expect(await page.locator('.departure .opening').count()).toBe(0)
    await page.locator('.departure').getByRole('link', { name: 'request 14' }).first().click()
    await expect.poll(() => page.getByRole('slider').getAttribute('aria-valuenow')).toBe('14')
    expect(faults).toEqual([])
    await closePage(page)
    run('inspect', hostile, '--html', out, '--with-text')
    const whole = await openPage(browser, pathToFileURL(out).href)
    await whole.page.getByRole('heading', { name: /Fix the login/ }).waitFor()
    expect([whole.faults, await isAttacked(whole.page)]).toEqual([[], false])
    await closePage(whole.page)
  })
})

describe('the server of the page', () => {
  it('answers only this host, this page and its cookie', async () => {
    const served = await startUi([hostile])
    const { port, searchParams } = new URL(served.url)
    const token = searchParams.get('token')
    const ask = (path: string, headers: Readonly<Record<string, string>>, method = 'GET') =>
      new Promise<{ status: number | undefined; cookie: string | undefined }>((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
          response.resume()
          resolve({ status: response.statusCode, cookie: response.headers['set-cookie']?.[0] })
        })
        sent.once('error', reject)
        sent.end()
      })
    const own = { host: `127.0.0.1:${port}` }
    const { cookie = '' } = await ask(`/?token=${token}`, own)
    const known = { ...own, cookie: cookie.split(';')[0] ?? '' }
    const statuses = [
      await ask('/', own),
      await ask('/?token=wrong', own),
      await ask('/api/sessions', known),
      await ask('/api/sessions', { ...known, host: `evil.example:${port}` }),
      await ask('/api/sessions', { ...known, origin: 'http://evil.example' }),
      await ask('/api/sessions', { ...known, 'sec-fetch-site': 'cross-site' }),
      await ask('/api/session/0123456789ab/undo', known, 'POST'),
      await ask('/api/sessions', known, 'DELETE'),
      await ask('/../package.json', known),
      await ask('//', known),
    ].map(({ status }) => status)
    await served.stop()
    expect(statuses).toEqual([401, 401, 200, 403, 403, 403, 403, 403, 404, 404])
  })
})
