/** A real Chromium for the tests of the page, and the page of `tidemark ui` in it, watched for errors and foreign requests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { TIDEMARK_COMMAND } from './command-line.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** What a run says that finds no browser. */
export const NO_BROWSER = 'No Chromium on the path: the page is not tested in a browser.\n'

/** Returns the browser on the path; null if there is none. */
export function findBrowser(): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter)
  for (const path of folders.flatMap((folder) => NAMES.map((name) => join(folder, name)))) {
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The next one may be there.
    }
  }
  return null
}

export function launchBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS })
}

export interface ServedPage {
  readonly url: string
  stop(): Promise<void>
}

/** Starts `tidemark ui` and returns its address. */
export async function startUi(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<ServedPage> {
  const child: ChildProcess = spawn(process.execPath, [...TIDEMARK_COMMAND, 'ui', '--json', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    let printed = ''
    child.stdout?.on('data', (data) => {
      printed += String(data)
      if (printed.includes('\n')) resolve(JSON.parse(printed).url)
    })
    child.once('exit', (code) => reject(new Error(`tidemark ui ended with ${code}: ${printed}`)))
  })
  return {
    url,
    stop: async () => {
      child.kill('SIGINT')
      await ended
    },
  }
}

export interface WatchedPage {
  readonly page: Page
  /** Errors of the console and of scripts, and requests to other hosts. Must stay empty. */
  readonly faults: string[]
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options })
  const page = await context.newPage()
  const faults: string[] = []
  const { host } = new URL(url)
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
  page.on('request', (request) => {
    const target = request.url()
    if (!target.startsWith('data:') && new URL(target).host !== host) faults.push(`request: ${target}`)
  })
  page.on('dialog', (dialog) => faults.push(`dialog: ${dialog.message()}`))
  await page.goto(url)
  return { page, faults }
}

/** Ends a page with its context, so that nothing of it is left for the next test. */
export async function closePage(page: Page): Promise<void> {
  await page.context().close()
}
