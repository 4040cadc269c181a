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

/** The names of Chromium's accessibility tree by role, each once and sorted. */
export async function readAccessibleNames(page: Page): Promise<Readonly<Record<string, readonly string[]>>> {
  const session = await page.context().newCDPSession(page)
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  await session.detach()
  const names: Record<string, string[]> = {}
  for (const { ignored, role, name } of nodes) {
    if (ignored || role === undefined) continue
    const kind = String(role.value)
    names[kind] = [...(names[kind] ?? []), String(name?.value ?? '')]
  }
  return Object.fromEntries(
    Object.entries(names).map(([kind, texts]) => [kind, [...new Set(texts)].toSorted()]),
  )
}
