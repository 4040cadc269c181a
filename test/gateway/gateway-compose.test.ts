/** The proxy of compose.yaml, by the rules of Caddy: its directives run in an order of their own, not in that of the file. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parse } from 'yaml'

const compose = parse(readFileSync(fileURLToPath(new URL('../../compose.yaml', import.meta.url)), 'utf8'))
const lines: readonly string[] = compose.configs.caddy.content.split('\n')

/** Returns the directives of the site, without those in a block of one of them. */
function listDirectives(): readonly string[] {
  return lines.filter((line) => /^ {2}[a-z]/.test(line)).map((line) => line.trim())
}

function listPaths(matcher: string): readonly string[] {
  const line = lines.find((each) => each.trim().startsWith(`${matcher} path `)) ?? ''
  return line.trim().split(' ').slice(2)
}

it('the proxy of compose.yaml passes on the API and the page, and nothing else', () => {
  // Of blocks of handle only the first that matches runs; respond beside them would answer every request with 404.
  expect(listDirectives()).toEqual(['handle @api {', 'handle @page {', 'handle {'])
  expect(listPaths('@api')).toEqual(['/v1/*'])
  expect(listPaths('@page')).toEqual(['/', '/page.js', '/page.css', '/api/*'])
  const passed = lines.filter((line) => line.trim().startsWith('reverse_proxy')).map((line) => line.trim())
  expect(new Set(passed)).toEqual(new Set(['reverse_proxy gateway-1:8788 gateway-2:8788 {']))
})
