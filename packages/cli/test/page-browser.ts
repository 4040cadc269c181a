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
  // One process draws all pages: to start another one for a page takes most of what the page takes.
  '--renderer-process-limit=1',
  '--disable-site-isolation-trials',
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

type PageLook = Pick<BrowserContextOptions, 'viewport' | 'colorScheme'>

interface PageWatch {
  host: string
  faults: string[]
}

const VIEWPORT = { width: 1200, height: 900 }
const watches = new WeakMap<Page, PageWatch>()
/** Closed pages, without storage: a context and page that are new take a second of CPU time, one that is used again a fifth. */
const idlePages = new WeakMap<Browser, Page[]>()

/** Opens an address in a page without cookies and storage, and watches it. `closePage` ends that. */
export async function openPage(browser: Browser, url: string, look: PageLook = {}): Promise<WatchedPage> {
  const page = idlePages.get(browser)?.pop() ?? (await createPage(browser))
  const faults: string[] = []
  // What a page that is used again still gets for its last address, such as a refusal without its cookies, is not this one's fault.
  page.once('framenavigated', () => watches.set(page, { host: new URL(url).host, faults }))
  await page.setViewportSize(look.viewport ?? VIEWPORT)
  await page.emulateMedia({ colorScheme: look.colorScheme ?? 'light' })
  await page.goto(url)
  return { page, faults }
}

async function createPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext({ viewport: VIEWPORT })
  const page = await context.newPage()
  const addFault = (text: string) => watches.get(page)?.faults.push(text)
  page.on('console', (message) => {
    if (message.type() === 'error') addFault(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => addFault(`error: ${error.message}`))
  page.on('request', (request) => {
    const target = request.url()
    if (!target.startsWith('data:') && new URL(target).host !== watches.get(page)?.host)
      addFault(`request: ${target}`)
  })
  page.on('dialog', (dialog) => addFault(`dialog: ${dialog.message()}`))
  return page
}

/**
 * Removes what the page stored and gives it back to `openPage`, which goes to another address. Until then it shows an answer without
 * scripts of the same address, since a page that stays asks its server again and again, and an empty one would be another process.
 * A test that failed before leaves its page alone.
 */
export async function closePage(page: Page): Promise<void> {
  watches.delete(page)
  await page.evaluate('localStorage.clear(); sessionStorage.clear()')
  await page.context().clearCookies()
  await page.mouse.move(0, 0)
  // The server may have ended, and a saved page has none.
  await page.goto(new URL('/closed', page.url()).href).catch(() => null)
  const browser = page.context().browser()
  if (browser !== null) idlePages.set(browser, [...(idlePages.get(browser) ?? []), page])
}
