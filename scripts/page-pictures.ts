/**
 * Draws pictures of the page from the made-up session: docs/images/ui-card.svg, the picture card as `tidemark inspect --card`
 * writes it, and docs/images/ui-tide.png, the tide chart in a browser. Needs Chromium. Run with `npm run pictures`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { main } from '@tidemark/cli'
import { findBrowser, launchBrowser, NO_BROWSER } from '../packages/cli/test/page-browser.ts'
import { toldLines } from './picture/told-lines.ts'

const WINDOW = { width: 1200, height: 900 }
/** The request that the pointer shows, as a share of the chart's width. */
const POINTED_AT = 0.85

const folder = mkdtempSync(join(tmpdir(), 'tidemark-picture-'))
const log = join(folder, 'login.jsonl')
const html = join(folder, 'login.html')
writeFileSync(
  log,
  toldLines()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join(''),
)
process.exitCode = await main(
  ['inspect', log, '--html', html, '--with-text', '--card', toImage('ui-card.svg')],
  {
    write: () => {},
    warn: (text) => process.stderr.write(text),
    env: { TZ: 'UTC', LANG: 'C.UTF-8' },
    isTty: false,
    columns: 100,
  },
)
await drawTide()
rmSync(folder, { recursive: true })

function toImage(name: string): string {
  return fileURLToPath(new URL(`../docs/images/${name}`, import.meta.url))
}

/** The page of the session with the pointer on its chart. */
async function drawTide(): Promise<void> {
  const executable = findBrowser()
  if (executable === null) return void process.stderr.write(NO_BROWSER)
  const browser = await launchBrowser(executable)
  const page = await browser.newPage({ viewport: WINDOW, locale: 'en-US', timezoneId: 'UTC' })
  await page.goto(pathToFileURL(html).href)
  const chart = await page.getByRole('slider').boundingBox()
  if (chart === null) throw new Error('The page has no chart.')
  await page.mouse.move(chart.x + POINTED_AT * chart.width, chart.y + chart.height / 2)
  await page.locator('.tip').waitFor()
  await page.screenshot({ path: toImage('ui-tide.png') })
  await browser.close()
}
