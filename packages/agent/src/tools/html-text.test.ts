import { expect, it } from 'vitest'
import { convertHtmlToText } from './html-text.ts'

const convert = async (html: string): Promise<string> =>
  (await convertHtmlToText(html, 'https://example.com/docs/page')).text

it.each([
  [
    'headings and paragraphs',
    '<h1>Title</h1><p>One\n  two</p><h3>Sub</h3><p>Three',
    '# Title\n\nOne two\n\n### Sub\n\nThree',
  ],
  [
    'links',
    '<p><a href="../a?b=1&amp;c">here</a> <a name=x>plain</a> <a href="#"></a>',
    '[here](https://example.com/a?b=1&c) plain',
  ],
  [
    'lists',
    '<ul><li>one<li>two<ol><li>a</li><li>b</li></ol></li></ul>after',
    '- one\n- two\n  1. a\n  2. b\n\nafter',
  ],
  [
    'code',
    '<p>Use <code>a  &lt; b</code></p><pre><code>if (x)\n    go()\n</code></pre>end',
    'Use `a < b`\n\n```\nif (x)\n    go()\n```\n\nend',
  ],
  ['tables', '<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>', 'A | B\n1 | 2'],
  [
    'paragraphs in list items',
    '<ul>\n <li>\n  <p>one</p>\n  <p>more</p></li>\n <li><div>two</div></li></ul>',
    '- one\n\nmore\n\n- two',
  ],
  [
    'tables with white space',
    '<table>\n <tr>\n  <td>1</td>\n  <td>2</td>\n </tr>\n <tr>\n  <td>3</td></tr></table>',
    '1 | 2\n3',
  ],
  ['empty list items', '<ul><li></li></ul><p>next</p>', '-\n\nnext'],
  ['breaks', 'one<br>two<br/>three', 'one\ntwo\nthree'],
  ['pictures', '<img src=x alt="A cat"><img src=y>', '[image: A cat]'],
  [
    'scripts and styles',
    '<head><title>t</title>a<script>if (1 < 2) x("</p>")</script>b<STYLE>c{}</Style>d',
    'abd',
  ],
  ['letters that lower case makes longer', 'İİİİ<script>x</script>after', 'İİİİafter'],
  ['comments', 'a<!-- <p> -- > x -->b<!doctype html>c', 'abc'],
  ['entities', '&lt;&#65;&#x1F600;&nbsp;&mdash;&unknown;&#0;&copy;', '<A😀 —&unknown;\ufffd©'],
  ['entities that few pages use', '&eacute;&rarr;&#128;&notin;&ampx', 'é→€∉&x'],
  ['pictures drawn in the page', 'a<svg><title>b</title><svg>c</svg>d</svg>e<svg/>f', 'aef'],
  ['comments that end early', 'a<!-->b<!--->c<!-- x --!>d', 'abcd'],
  ['stray signs', '1 < 2 and 3 > 2 <', '1 < 2 and 3 > 2 <'],
  ['attributes with signs', '<p title="a > b">x</p>', 'x'],
  ['unclosed elements', '<script>never closed', ''],
])('%s', async (_, html, text) => {
  expect(await convert(html)).toBe(text)
})

it('the title is found', async () => {
  const findTitle = async (html: string) => (await convertHtmlToText(html, 'https://example.com')).title
  expect(await findTitle('<html><TITLE lang=en>\n A &amp; B\n</title>')).toBe('A & B')
  expect(await findTitle('<p>')).toBeNull()
  expect((await findTitle(`<title>${'x'.repeat(10_000)}`))?.length).toBe(500)
})

it.each([
  '<',
  '<a href="',
  '<!--',
  '<p '.repeat(3),
  '&#',
  '<script>',
  '</',
  '<pre>',
  '[',
  '<li>',
  '<a href=x>',
  '[](',
  '<a href=x></a>',
  '<ul><li>',
])('a page made of %j is converted in a moment', async (part) => {
  const started = process.cpuUsage()
  await convert(part.repeat(1_000_000 / part.length))
  expect(process.cpuUsage(started).user).toBeLessThan(5_000_000)
})

it.each([
  ['blanks before a letter', `<pre>${' '.repeat(1_000_000)}x</pre>`],
  ['blanks of a line that looks like code', `<pre>\`\`\`\n${' '.repeat(1_000_000)}x</pre>`],
  ['items deep in lists', `${'<ul>'.repeat(100_000)}${'<li>a'.repeat(100_000)}`],
  ['links in links', `${'<a href=x>'.repeat(50_000)}${'</a>'.repeat(50_000)}`],
])('a page of %s is converted in a moment', async (_, html) => {
  const started = process.cpuUsage()
  expect((await convert(html)).length).toBeLessThan(10_000_000)
  expect(process.cpuUsage(started).user).toBeLessThan(5_000_000)
})
