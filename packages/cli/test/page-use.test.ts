/** The page of `tidemark ui` for hands, eyes and screen readers: keyboard, pointer, contrast, narrow windows, names and roles. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sampleCases } from '@tidemark/core/testing'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { COMMAND_SAMPLE, TIDEMARK_COMMAND } from './command-line.ts'
import { createHostileLog, HostileLog } from './hostile-log.ts'
import { closePage, findBrowser, launchBrowser, openPage, type ServedPage, startUi } from './page-browser.ts'
import { listFaintTexts, measureOverflow, readAccessibleNames, readFocus } from './page-look.ts'

const executable = findBrowser()
const folder = mkdtempSync(join(tmpdir(), 'tidemark-page-use-'))
const hostile = join(folder, 'hostile.jsonl')
const quiet = join(folder, 'quiet.jsonl')
writeFileSync(hostile, createHostileLog().text)
writeFileSync(
  quiet,
  new HostileLog('quiet').prompt('A quiet one').answer('Hello.', { read: 0, written: 5_000 }).text,
)

describe.skipIf(executable === null)('the page in use', () => {
  let browser: Browser
  let served: ServedPage
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '')
    served = await startUi([hostile, quiet])
  })
  afterAll(async () => {
    await browser.close()
    await served.stop()
  })

  it('moves the cursor and the tip over the drawing of the chart without changing it', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    const chart = page.getByRole('slider')
    await page.locator('.chart .edge').waitFor()
    const box = await chart.boundingBox()
    if (box === null) throw new Error('The chart has no place.')
    await page.evaluate(
      `window.drawn = 0; new MutationObserver((changes) => { window.drawn += changes.length }).observe(document.querySelector('.chart svg'), { subtree: true, childList: true, attributes: true, characterData: true })`,
    )
    const places: (string | null)[] = []
    for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
      await page.mouse.move(box.x + box.width * share, box.y + 200)
      const request = Math.floor(share * 15) + 1
      await expect.poll(() => page.locator('.tip').innerText()).toContain(`Request ${request}`)
      places.push(await page.locator('.cursor').getAttribute('style'))
    }
    expect(new Set(places).size).toBe(places.length)
    expect(await page.evaluate('window.drawn')).toBe(0)
    // A layer that is only moved costs no painting.
    const layers = await page.evaluate(
      `['.cursor', '.tip'].map((path) => getComputedStyle(document.querySelector('.chart ' + path)).willChange)`,
    )
    expect(layers).toEqual(['transform', 'transform'])
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await expect.poll(() => page.evaluate('window.drawn')).not.toBe(0)
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('zooms by a drag that ends outside the chart, shows all again with Escape, and opens a request only by the main button', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    await page.locator('.chart .edge').waitFor()
    const chart = page.getByRole('slider')
    const range = () => page.locator('.range span').first().innerText()
    const box = await chart.boundingBox()
    if (box === null) throw new Error('The chart has no place.')
    await page.mouse.move(box.x + box.width * 0.5, box.y + 200)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width + 10, box.y + 200, { steps: 4 })
    await expect.poll(() => page.locator('.drag').count()).toBe(1)
    await page.mouse.up()
    await expect.poll(range).toBe('Requests 8 to 15 of 15')
    expect(await page.locator('.drag').count()).toBe(0)
    await chart.press('Escape')
    await expect.poll(range).toBe('Requests 1 to 15 of 15')
    await chart.click({ button: 'right' })
    await chart.click({ button: 'middle' })
    expect(await page.getByRole('dialog').count()).toBe(0)
    await chart.click()
    await page.getByRole('dialog').locator('.opening').first().waitFor()
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('opens from a link on another site, with no token left in the address or the history', async () => {
    const site = createServer((_, response) =>
      response.setHeader('content-type', 'text/html').end(`<a href="${served.url}">The page</a>`),
    ).listen(0, '127.0.0.1')
    onTestFinished(() => void site.close())
    await once(site, 'listening')
    const { port } = site.address() as AddressInfo
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`http://localhost:${port}/`)
    await page.getByRole('link').click()
    await page.getByRole('link', { name: /Fix the login/ }).waitFor()
    expect(new URL(page.url()).search).toBe('')
    await page.goBack()
    expect(new URL(page.url()).port).toBe(String(port))
    await context.close()
  })

  it('says that its port is taken, and by no stack', async () => {
    const { port } = new URL(served.url)
    const { status, stderr } = spawnSync(
      process.execPath,
      [...TIDEMARK_COMMAND, 'ui', '--port', port, '--no-open', quiet],
      { encoding: 'utf8' },
    )
    expect([status, stderr.trim().split('\n')]).toEqual([
      1,
      [expect.stringMatching(`cannot listen on 127.0.0.1:${port} .*Choose another port`)],
    ])
    expect(stderr).not.toContain('a bug')
  })

  it('has a bar of money without a gap, no price for a clearing that made nothing new, and a way from a block to its request', async () => {
    const sample = await startUi([COMMAND_SAMPLE])
    onTestFinished(() => sample.stop())
    const { page, faults } = await openPage(browser, sample.url)
    await page.locator('.chart .edge').waitFor()
    const shares = await page.locator('.spending small').allInnerTexts()
    expect(shares.map(Number.parseFloat).reduce((sum, share) => sum + share, 0)).toBeGreaterThan(98)
    expect(await page.locator('.flag-clearing text').allTextContents()).toEqual(['$0'])
    await page.getByRole('link', { name: 'What left', exact: true }).click()
    await page.locator('.departure').first().waitFor()
    // Nothing was needed again, so there is nothing to choose.
    expect(await page.locator('.departure').getByRole('checkbox').count()).toBe(0)
    await page.getByRole('link', { name: 'What filled it' }).click()
    await page
      .getByRole('link', { name: /^request \d/ })
      .first()
      .click()
    await expect.poll(() => page.getByRole('slider').getAttribute('aria-valuenow')).toBe('7')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('can be used with the keyboard alone, with the focus always in sight', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('row', { name: /Fix the login/ }).waitFor()
    const hidden: string[] = []
    const goTo = async (name: RegExp): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press('Tab')
        const focus = await readFocus(page)
        if (!focus.isShown) hidden.push(focus.name)
        if (name.test(focus.name)) return
      }
      throw new Error(`Tab does not reach ${name}.`)
    }
    await goTo(/^Skip to content/)
    await goTo(/^Colours/)
    await goTo(/^INPUT/)
    await page.keyboard.type('login')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await goTo(/^Cost/)
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('th[aria-sort=descending]').innerText()).toContain('Cost')
    await goTo(/^Fix the login/)
    await page.keyboard.press('Enter')
    await page.getByRole('slider').waitFor()
    await goTo(/^Context by request/)
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.locator('.opening').first().waitFor()
    await goTo(/^(?:Read|reply)\b/)
    await page.keyboard.press('Enter')
    await expect.poll(() => dialog.locator('pre').count()).toBe(1)
    await page.keyboard.press('Escape')
    await expect.poll(() => dialog.count()).toBe(0)
    expect((await readFocus(page)).name).toBe('Context by request')
    expect([hidden, faults]).toEqual([[], []])
    await closePage(page)
  })

  it('writes the dollars of a flag above the lines of its neighbours', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).click()
    await page.locator('.flag text').nth(1).waitFor()
    const drawn = await page.evaluate<readonly string[]>(
      `[...document.querySelectorAll('.flag line, .flag text')].map(({ tagName }) => tagName)`,
    )
    expect(drawn).toEqual(drawn.toSorted())
    expect(new Set(drawn)).toEqual(new Set(['line', 'text']))
    expect(faults).toEqual([])
    await closePage(page)
  })

  const looks = [
    ['half a screen', { viewport: { width: 960, height: 900 } }],
    ['light', { colorScheme: 'light' }],
    ['a tablet', { viewport: { width: 780, height: 900 } }],
    ['narrow', { viewport: { width: 380, height: 800 } }],
    ['dark', { colorScheme: 'dark' }],
    ['narrow and dark', { viewport: { width: 380, height: 800 }, colorScheme: 'dark' }],
  ] as const
  it.each(sampleCases(looks, 3))('is as wide as the window and can be read: %s', async (_, options) => {
    const { page, faults } = await openPage(browser, served.url, options)
    const look = async (view: string): Promise<void> =>
      expect({ view, faint: await listFaintTexts(page), tooWide: await measureOverflow(page) }).toEqual({
        view,
        faint: [],
        tooWide: 0,
      })
    await page.getByRole('link', { name: /Fix the login/ }).waitFor()
    await look('list')
    await page.getByRole('link', { name: /Fix the login/ }).click()
    await page.locator('.flag-break').first().waitFor()
    await look('tide')
    await page.getByRole('slider').press('Enter')
    await page.getByRole('dialog').locator('.opening').first().waitFor()
    await look('request')
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'What filled it' }).click()
    await page.getByRole('heading', { name: 'By tool' }).waitFor()
    await look('content')
    await page.getByRole('link', { name: 'What left', exact: true }).click()
    await page.locator('.departure').waitFor()
    await look('left')
    await page.getByRole('link', { name: 'Cache', exact: true }).click()
    await page.locator('.breaks').waitFor()
    await look('cache')
    await page.getByRole('link', { name: 'What if' }).click()
    await page
      .getByRole('checkbox', { name: /Economy|Claude/ })
      .first()
      .uncheck()
    await look('if')
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('skips the header without leaving the view, finds the focus in each new view, and the name of it in the title', async () => {
    const { page, faults } = await openPage(browser, served.url)
    await page.getByRole('link', { name: /Fix the login/ }).press('Enter')
    await page.getByRole('slider').waitFor()
    const focused = () => page.evaluate('document.activeElement.tagName')
    // The link that was followed is gone.
    await expect.poll(focused).toBe('MAIN')
    const titles = [await page.title()]
    await page.getByRole('link', { name: 'Cache', exact: true }).click()
    await expect.poll(() => page.title()).toContain('Cache · Tidemark')
    await page.getByRole('button', { name: 'Skip to content' }).press('Enter')
    await expect.poll(focused).toBe('MAIN')
    expect(await page.locator('.tabs [aria-current]').innerText()).toBe('Cache')
    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await expect.poll(() => page.title()).toBe('Sessions · Tidemark')
    expect(titles).toEqual([expect.stringMatching(/^Fix the login .* · Tide · Tidemark$/)])
    expect(faults).toEqual([])
    await closePage(page)
  })

  it('has a name and a role for everything that a screen reader meets', async () => {
    const { page, faults } = await openPage(browser, served.url)
    const link = page.getByRole('link', { name: /Fix the login/ })
    await link.waitFor()
    const list = await readAccessibleNames(page)
    expect(list).toMatchObject({ table: ['Sessions'], searchbox: ['Filter'], group: ['Cost by'] })
    await link.click()
    await page.locator('.chart .edge').waitFor()
    await page.getByText('All requests as a table').click()
    await page.getByRole('table').waitFor()
    expect(await readAccessibleNames(page)).toMatchObject({
      slider: ['Context by request'],
      list: expect.arrayContaining(['Legend']),
      region: ['Tide chart', 'Where the money went'],
      navigation: ['Main', 'Views of this session'],
      table: ['All requests'],
      columnheader: ['Cost', 'From the cache', 'Request', 'Time', 'Tokens', 'What happened before it'],
    })
    await page.getByRole('slider').press('Enter')
    await page.getByRole('dialog').locator('.opening').first().waitFor()
    // Nothing but the dialog: what is behind it cannot be reached.
    expect(await readAccessibleNames(page)).toMatchObject({ dialog: ['Request 15'], button: ['Close'] })
    await page.keyboard.press('Escape')
    for (const [view, tables] of [
      ['What filled it', ['By tool', 'Files read more than once']],
      ['Cache', ['Cache breaks']],
    ] as const) {
      await page.getByRole('link', { name: view, exact: true }).click()
      await expect.poll(async () => (await readAccessibleNames(page)).table).toEqual(tables)
      const names = await readAccessibleNames(page)
      const unnamed = ['link', 'button', 'combobox', 'columnheader', 'heading'].filter((role) =>
        names[role]?.includes(''),
      )
      expect([view, unnamed]).toEqual([view, []])
    }
    expect(faults).toEqual([])
    await closePage(page)
  })
})
