/** What a page looks like, measured in the browser: text with too little contrast, what is wider than the window, the focus. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

const file = new URL('./page-look.browser.js', import.meta.url)
// A script of a page is no module.
const script = readFileSync(file, 'utf8').replaceAll('export function', 'function')

/** Texts whose contrast with their ground is below 4.5, with the contrast. Text that is switched off does not count. */
export function listFaintTexts(page: Page): Promise<readonly string[]> {
  return page.evaluate(`${script}\nlistFaintTexts()`)
}

/** Pixels by which the page is wider than the window; 0 if it is not. */
export function measureOverflow(page: Page): Promise<number> {
  return page.evaluate(`${script}\nmeasureOverflow()`)
}

/** The name of what has the focus, and whether a ring shows it. */
export function readFocus(page: Page): Promise<{ readonly name: string; readonly isShown: boolean }> {
  return page.evaluate(`${script}\nreadFocus()`)
}
