/** Runs in the page: what `page-look.ts` measures. Not TypeScript, because the tests around it have no document. */

function parseColor(color) {
  return (color.match(/[\d.]+/g) ?? []).map(Number)
}

function measureLight(channels) {
  return channels
    .slice(0, 3)
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0)
}

function findGround(element) {
  if (element === null) return [255, 255, 255]
  const ground = parseColor(getComputedStyle(element).backgroundColor)
  return ground.length === 4 && ground[3] === 0 ? findGround(element.parentElement) : ground
}

export function listFaintTexts() {
  const faint = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const { textContent, parentElement: parent } = walker.currentNode
    const text = textContent.trim()
    if (text === '' || parent.closest('svg, script, :disabled, option') !== null) continue
    const box = parent.getBoundingClientRect()
    if (box.width === 0 || box.left < 0) continue
    const lights = [parseColor(getComputedStyle(parent).color), findGround(parent)].map(measureLight)
    const contrast = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05)
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${text.slice(0, 40)}`)
  }
  return faint
}

export function measureOverflow() {
  return Math.max(0, document.documentElement.scrollWidth - window.innerWidth)
}

export function readFocus() {
  const element = document.activeElement
  const { outlineStyle, outlineWidth } = getComputedStyle(element)
  const label = element.getAttribute('aria-label') ?? element.textContent
  return {
    name: label.trim() || element.tagName,
    isShown: outlineStyle !== 'none' && outlineWidth !== '0px',
  }
}
