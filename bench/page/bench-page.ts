/**
 * `npm run bench:page [-- LOG]`: what the page of `tidemark ui` costs: its bytes; the time from the start of the command to the first paint
 * and to the chart, beside that of `tidemark inspect`, of a made-up log of 3 MB or of LOG; and the frames while the pointer moves over
 * 10,000 requests and while they are zoomed. Needs `npm run build` and Chromium. Times are those of a quiet machine only on one.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { HostileLog } from '../../packages/cli/test/hostile-log.ts'
import { findBrowser, launchBrowser, NO_BROWSER } from '../../packages/cli/test/page-browser.ts'

const COMMAND = fileURLToPath(new URL('../../packages/cli/bin/tidemark.mjs', import.meta.url))
const ROUNDS = 7
const SWEEPS = 6
const SWEEP_STEPS = 120
const ZOOMS = 8
const MAX_FRAME_MS = 33
const MAX_GZIPPED = 120_000
const MAX_PAINT_AFTER_INSPECT_MS = 1_000

/** A session of about 3 MB: a file is read at each of 250 calls. */
function writeLongLog(path: string): void {
  const log = new HostileLog('long').prompt('A long session')
  for (let call = 0; call < 250; call += 1)
    log.read(
      `/home/user/src/part-${call}.ts`,
      `export const value${call} = ${call} // a line\n`.repeat(280),
      {
        read: call === 0 ? 0 : 20_000 + call * 500,
        written: 500,
      },
    )
  writeFileSync(path, log.text)
}

/** 10,000 calls, with a cache break at every 200th and a compaction at every 1,000th. */
function writeManyCalls(path: string): void {
  const log = new HostileLog('many').prompt('Many calls')
  for (let call = 1; call <= 10_000; call += 1) {
    const tokens = 20_000 + (call % 1_000) * 120
    if (call % 1_000 === 0) log.compact(tokens, 'What was done so far.').prompt('Go on.')
    if (call % 200 === 100) log.answer('Again.', { read: 0, written: tokens })
    else log.answer('Done.', { read: tokens - 500, written: 500 })
  }
  writeFileSync(path, log.text)
}

function measureBytes(): { readonly plain: number; readonly gzipped: number } {
  const sizes = ['page.js', 'page.css'].map((name) => {
    const content = readFileSync(new URL(`../../packages/cli/dist/page/${name}`, import.meta.url))
    const gzipped = gzipSync(content, { level: 9 }).length
    print(`${name}: ${content.length} bytes, ${gzipped} gzipped`)
    return { plain: content.length, gzipped }
  })
  return sizes.reduce((sum, size) => ({
    plain: sum.plain + size.plain,
    gzipped: sum.gzipped + size.gzipped,
  }))
}

function timeInspect(log: string): number {
  const started = performance.now()
  spawnSync(process.execPath, [COMMAND, 'inspect', log], { stdio: 'ignore' })
  return performance.now() - started
}

interface OpenedPage {
  readonly page: Page
  readonly paintMs: number
  readonly chartMs: number
  close(): Promise<void>
}

/** Starts the command, opens its page in a browser that is running, and measures both from the start of the process. */
async function openLog(browser: Browser, log: string): Promise<OpenedPage> {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } })
  const started = performance.now()
  const child = spawn(process.execPath, [COMMAND, 'ui', '--json', log], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const [printed] = (await child.stdout[Symbol.asyncIterator]().next()).value.toString().split('\n')
  await page.goto(JSON.parse(printed).url)
  await page.locator('.chart .edge').waitFor({ timeout: 120_000 })
  const chartMs = performance.now() - started
  const sincePaint = await page.evaluate<number>(
    `performance.now() - performance.getEntriesByName('first-contentful-paint')[0].startTime`,
  )
  return {
    page,
    paintMs: performance.now() - started - sincePaint,
    chartMs,
    close: async () => {
      await page.close()
      child.kill('SIGINT')
      await ended
    },
  }
}

/** The times between frames while `act` runs, in milliseconds. */
async function measureFrames(page: Page, act: () => Promise<void>): Promise<readonly number[]> {
  await page.evaluate(
    `window.frames_ = []; window.last_ = performance.now(); window.isMeasured_ = true;
     requestAnimationFrame(function next(now) { frames_.push(now - last_); last_ = now; if (isMeasured_) requestAnimationFrame(next) })`,
  )
  await act()
  return page.evaluate<readonly number[]>(`isMeasured_ = false; frames_.slice(1)`)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

function describeFrames(frames: readonly number[]): string {
  const [middle, most] = [quantile(frames, 0.5), quantile(frames, 0.95)]
  return `${frames.length} frames, median ${middle.toFixed(1)} ms, p95 ${most.toFixed(1)} ms, longest ${Math.max(...frames).toFixed(0)} ms`
}

async function sweep(page: Page): Promise<void> {
  const box = await page.getByRole('slider').boundingBox()
  if (box === null) throw new Error('The chart has no place.')
  for (let turn = 0; turn < SWEEPS; turn += 1)
    for (let step = 0; step < SWEEP_STEPS; step += 1) {
      const share = turn % 2 === 0 ? step / SWEEP_STEPS : 1 - step / SWEEP_STEPS
      await page.mouse.move(box.x + 2 + share * (box.width - 4), box.y + 220)
    }
}

async function zoom(page: Page): Promise<void> {
  for (const name of ['Zoom in', 'Zoom out'])
    for (let turn = 0; turn < ZOOMS; turn += 1) {
      const button = page.getByRole('button', { name })
      if (await button.isEnabled()) await button.click()
    }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function main(): Promise<number> {
  const executable = findBrowser()
  if (executable === null) {
    print(NO_BROWSER.trimEnd())
    return 1
  }
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-bench-page-'))
  const [long, many] = [process.argv[2] ?? join(folder, 'long.jsonl'), join(folder, 'many.jsonl')]
  if (process.argv[2] === undefined) writeLongLog(long)
  writeManyCalls(many)
  const browser = await launchBrowser(executable)
  const { gzipped } = measureBytes()
  const times: { inspect: number; paint: number; chart: number }[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const inspect = timeInspect(long)
    const opened = await openLog(browser, long)
    await opened.close()
    times.push({ inspect, paint: opened.paintMs, chart: opened.chartMs })
  }
  const [inspect, paint, chart] = (['inspect', 'paint', 'chart'] as const).map((name) =>
    quantile(
      times.map((time) => time[name]),
      0.5,
    ),
  ) as [number, number, number]
  print(
    `log of ${(statSync(long).size / 1e6).toFixed(1)} MB, medians of ${ROUNDS} rounds from the start of the process:`,
  )
  print(`inspect ${inspect.toFixed(0)} ms, first paint ${paint.toFixed(0)} ms, chart ${chart.toFixed(0)} ms`)
  const opened = await openLog(browser, many)
  print(`10,000 calls, chart after ${opened.chartMs.toFixed(0)} ms`)
  const pointer = await measureFrames(opened.page, () => sweep(opened.page))
  print(`pointer: ${describeFrames(pointer)}`)
  print(`zoom: ${describeFrames(await measureFrames(opened.page, () => zoom(opened.page)))}`)
  await opened.close()
  await browser.close()
  rmSync(folder, { recursive: true })
  const failures = [
    gzipped > MAX_GZIPPED ? `more than ${MAX_GZIPPED} bytes gzipped` : '',
    paint - inspect > MAX_PAINT_AFTER_INSPECT_MS ? 'the first paint is more than a second after inspect' : '',
    quantile(pointer, 0.95) > MAX_FRAME_MS ? `p95 of the pointer's frames above ${MAX_FRAME_MS} ms` : '',
  ].filter((failure) => failure !== '')
  for (const failure of failures) print(`NOT MET: ${failure}`)
  return failures.length === 0 ? 0 : 1
}

process.exitCode = await main()
