/**
 * The picture card of a session: the tide chart, one sentence and six figures as an SVG of 1200 by 630 pixels, the usual size of
 * link previews. It contains no text of the session, and is created without a browser.
 */
import { formatDuration, formatTokenLimit } from '@tidemark/terminal/render/format-numbers'
import type { SessionReport } from 'tidemark/logs'
import { FLAG_SIGN_PATHS, formatFlagLabel } from '../chart/chart-flags.ts'
import { CONTENT_CLASSES } from '../chart/content-classes.ts'
import { formatHeadline, listKeyFigures } from '../chart/headline.ts'
import { PROGRAM_NAMES } from '../chart/programs.ts'
import { layOutTide, type TideLayout } from '../chart/tide-layout.ts'
import { anonymizeModels } from './html-export.ts'

const [WIDTH, HEIGHT] = [1200, 630]
const [CHART_WIDTH, CHART_HEIGHT, CHART_TOP] = [1120, 330, 222]
const FLAG_HEIGHT = 66
/** Outline that keeps a label readable over the curve. */
const HALO = ' paint-order="stroke" stroke="#0a1828" stroke-width="4" stroke-linejoin="round"'
const FONT = 'system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif'
const SHOWN_FIGURES = ['Cost', 'Lost to breaks', 'Saved by cache', 'Peak context', 'Calls', 'Compactions']
const TONES: Readonly<Record<string, string>> = { good: '#4fd6a5', bad: '#ff7b86' }
const FLAG_COLOURS = { break: '#ff7b86', compaction: '#ff9bd2', clearing: '#4fd6a5' }

export function drawPictureCard(report: SessionReport): string {
  const layout = layOutTide(report, {
    width: CHART_WIDTH,
    height: CHART_HEIGHT,
    from: 0,
    to: Math.max(1, report.requests.length),
    flagHeight: FLAG_HEIGHT,
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="${FONT}">
<title>${escapeXml(formatHeadline(report))}</title>
<defs>
<linearGradient id="ground" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#0d2136"/><stop offset="1" stop-color="#081320"/></linearGradient>
<pattern id="cold" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#b9e3ff" opacity=".2"/><rect width="2" height="6" fill="#b9e3ff" opacity=".5"/></pattern>
</defs>
<rect width="${WIDTH}" height="${HEIGHT}" fill="url(#ground)"/>
${drawHead(report)}
<g transform="translate(40 ${CHART_TOP})">
${drawChart(layout)}
</g>
${drawFoot(report, layout)}
</svg>
`
}

/** Width of a character in ems, for the widest font that a reader may have. Narrower fonts leave empty space. */
const CHARACTER_WIDTH = 0.62
const BOLD_WIDTH = 0.68

function measureText(text: string, size: number, width = CHARACTER_WIDTH): number {
  return text.length * size * width
}

function drawHead(report: SessionReport): string {
  const headline = formatHeadline(report)
  const size = Math.min(31, CHART_WIDTH / measureText(headline, 1, 0.6))
  return `<text x="40" y="78" font-size="${size.toFixed(1)}" font-weight="700" fill="#ffffff">${escapeXml(headline)}</text>
<text x="40" y="110" font-size="16" fill="#93a7ba">${escapeXml(describeSession(report))}</text>
${drawFigures(report)}`
}

function describeSession({ format, models, durationMs }: SessionReport): string {
  const known = anonymizeModels(models)
  const more = known.length > 2 ? ` and ${known.length - 2} more` : ''
  const parts = [PROGRAM_NAMES[format], `${known.slice(0, 2).join(', ')}${more}`]
  return [...parts, durationMs === null ? '' : formatDuration(durationMs)]
    .filter((part) => part !== '')
    .join(' · ')
}

/** Draws the figures in a row, with equal space between them. */
function drawFigures(report: SessionReport): string {
  const figures = listKeyFigures(report)
    .filter(({ name }) => SHOWN_FIGURES.includes(name))
    .map((figure) => ({
      ...figure,
      width: Math.max(measureText(figure.name, 16), measureText(figure.text, 24, BOLD_WIDTH)),
    }))
  const used = figures.reduce((sum, { width }) => sum + width, 0)
  const gap = Math.max(12, (CHART_WIDTH - used) / Math.max(1, figures.length - 1))
  let x = 40
  return figures
    .map(({ name, text, tone, width }) => {
      const at = Math.round(x)
      x += width + gap
      return `<text x="${at}" y="158" font-size="16" fill="#93a7ba">${escapeXml(name)}</text><text x="${at}" y="189" font-size="24" font-weight="650" fill="${TONES[tone ?? ''] ?? '#e6eef6'}">${escapeXml(text)}</text>`
    })
    .join('\n')
}

function drawChart(layout: TideLayout): string {
  const areas = layout.areas.map((path, index) =>
    path === '' ? '' : `<path d="${path}" fill="${CONTENT_CLASSES[index]?.dark ?? '#888'}"/>`,
  )
  const bands = layout.coldBands.map(
    ({ x, width }) =>
      `<rect x="${x.toFixed(1)}" y="${layout.top}" width="${width.toFixed(1)}" height="${layout.bottom - layout.top}" fill="url(#cold)"/>`,
  )
  const limits = layout.limits.map(
    ({ y, label, kind }) =>
      `<line x2="${CHART_WIDTH}" y1="${y}" y2="${y}" stroke="${kind === 'window' ? '#ff7b86' : '#93a7ba'}"${kind === 'window' ? '' : ' stroke-dasharray="6 5"'}/><text x="${CHART_WIDTH}" y="${y - 6}" font-size="15" fill="#93a7ba" text-anchor="end"${HALO}>${label}</text>`,
  )
  const ticks = layout.tokenTicks.map(
    ({ y, tokens }, index) =>
      `<text x="0" y="${y - 5}" font-size="14" fill="#93a7ba"${HALO}>${formatTokenLimit(tokens)}${index === layout.tokenTicks.length - 1 ? ' tokens of context' : ''}</text><line x2="${CHART_WIDTH}" y1="${y}" y2="${y}" stroke="#b9e3ff" opacity=".14"/>`,
  )
  const flags = layout.flags.map((flag) => {
    const colour = FLAG_COLOURS[flag.kind]
    const top = flag.row === null ? FLAG_HEIGHT - 4 : flag.row * 22 + 16
    const label =
      flag.row === null
        ? ''
        : `<text x="${flag.x}" y="${top}" font-size="16" font-weight="650" text-anchor="middle" fill="${colour}">${escapeXml(formatFlagLabel(flag))}</text>`
    return `<line x1="${flag.x}" x2="${flag.x}" y1="${top + 4}" y2="${Math.max(flag.y, FLAG_HEIGHT)}" stroke="${colour}" stroke-width="1.4"/><path d="${FLAG_SIGN_PATHS[flag.kind]}" transform="translate(${flag.x} ${Math.max(flag.y, FLAG_HEIGHT)})" fill="${colour}"/>${label}`
  })
  return [
    ...areas,
    `<path d="${layout.edge}" fill="none" stroke="#d6ecff" stroke-width="1.6"/>`,
    `<clipPath id="whole"><path d="${layout.whole}"/></clipPath><g clip-path="url(#whole)">${bands.join('')}</g>`,
    ...ticks,
    ...limits,
    ...flags,
  ]
    .filter((part) => part !== '')
    .join('\n')
}

const FLAG_TITLES = { break: 'cache break', compaction: 'compaction', clearing: 'clearing' } as const

/** Draws the legend: only the colours and signs that occur in this picture. */
function drawFoot(report: SessionReport, layout: TideLayout): string {
  const classes = CONTENT_CLASSES.filter((_, index) => layout.areas[index] !== '').map(({ label, dark }) => ({
    label: label.replace(/,.*/, ''),
    sign: `<rect width="12" height="12" y="-11" rx="3" fill="${dark}"/>`,
  }))
  const flags = new Set(layout.flags.map(({ kind }) => kind))
  const signs = (['break', 'compaction', 'clearing'] as const)
    .filter((kind) => flags.has(kind))
    .map((kind) => ({
      label: FLAG_TITLES[kind],
      sign: `<path d="${FLAG_SIGN_PATHS[kind]}" transform="translate(6 -5)" fill="${FLAG_COLOURS[kind]}"/>`,
    }))
  const cold = {
    label: 'cache cold',
    sign: '<rect width="12" height="12" y="-11" rx="3" fill="url(#cold)"/>',
  }
  return `${drawLegend(classes, { x: 40, y: 601 })}
<text x="40" y="574" font-size="14" fill="#93a7ba">call 1</text>
${drawLegend(layout.coldBands.length === 0 ? signs : [...signs, cold], { x: 430, y: 574 })}
<text x="1160" y="574" font-size="14" fill="#93a7ba" text-anchor="end">call ${report.requests.length}</text>
<text x="1160" y="601" font-size="16" text-anchor="end"><tspan fill="#6cb6ff" font-weight="700">tidemark</tspan></text>`
}

interface LegendEntry {
  readonly label: string
  readonly sign: string
}

const LEGEND_SIZE = 13.5

function drawLegend(
  entries: readonly LegendEntry[],
  place: { readonly x: number; readonly y: number },
): string {
  let { x } = place
  const drawn = entries.map(({ label, sign }) => {
    const at = Math.round(x)
    x += 34 + measureText(label, LEGEND_SIZE)
    return `<g transform="translate(${at} ${place.y})">${sign}<text x="17" font-size="${LEGEND_SIZE}" fill="#93a7ba">${escapeXml(label)}</text></g>`
  })
  return drawn.join('\n')
}

function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
