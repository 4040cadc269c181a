/**
 * The picture card of a session: the tide chart, one sentence and four figures as an SVG of 1200 by 630, the size that
 * links are shown at. It has no text of the session, and is made without a browser.
 */
import type { SessionReport } from 'tidemark/logs'
import { FLAG_SIGNS, formatFlagLabel } from '../chart/chart-flags.ts'
import { CONTENT_CLASSES } from '../chart/content-classes.ts'
import { listFigures, writeHeadline } from '../chart/headline.ts'
import { layOutTide, type TideLayout } from '../chart/tide-layout.ts'

const [WIDTH, HEIGHT] = [1200, 630]
const [CHART_WIDTH, CHART_HEIGHT, CHART_TOP] = [1120, 330, 222]
const FLAG_HEIGHT = 66
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
<title>${escapeXml(writeHeadline(report))}</title>
<defs>
<linearGradient id="ground" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#0d2136"/><stop offset="1" stop-color="#081320"/></linearGradient>
<pattern id="cold" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#b9e3ff" opacity=".2"/><rect width="2" height="6" fill="#b9e3ff" opacity=".5"/></pattern>
</defs>
<rect width="${WIDTH}" height="${HEIGHT}" fill="url(#ground)"/>
${drawHead(report)}
<g transform="translate(40 ${CHART_TOP})">
${drawChart(layout)}
</g>
${drawFoot()}
</svg>
`
}

function drawHead(report: SessionReport): string {
  const figures = listFigures(report).filter(({ name }) => SHOWN_FIGURES.includes(name))
  const step = CHART_WIDTH / figures.length
  const columns = figures.map(({ name, text, tone }, index) => {
    const x = 40 + index * step
    return `<text x="${x}" y="150" font-size="16" fill="#93a7ba">${escapeXml(name)}</text><text x="${x}" y="184" font-size="24" font-weight="650" fill="${TONES[tone ?? ''] ?? '#e6eef6'}">${escapeXml(text)}</text>`
  })
  return `<text x="40" y="84" font-size="31" font-weight="700" fill="#ffffff">${escapeXml(writeHeadline(report))}</text>
${columns.join('\n')}`
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
      `<line x2="${CHART_WIDTH}" y1="${y}" y2="${y}" stroke="${kind === 'window' ? '#ff7b86' : '#93a7ba'}"${kind === 'window' ? '' : ' stroke-dasharray="6 5"'}/><text x="${CHART_WIDTH}" y="${y - 6}" font-size="15" fill="#93a7ba" text-anchor="end">${label}</text>`,
  )
  const flags = layout.flags.map((flag) => {
    const colour = FLAG_COLOURS[flag.kind]
    const top = flag.row === null ? FLAG_HEIGHT - 4 : flag.row * 22 + 16
    const label =
      flag.row === null
        ? ''
        : `<text x="${flag.x}" y="${top}" font-size="16" font-weight="650" text-anchor="middle" fill="${colour}">${escapeXml(formatFlagLabel(flag))}</text>`
    return `<line x1="${flag.x}" x2="${flag.x}" y1="${top + 4}" y2="${Math.max(flag.y, FLAG_HEIGHT)}" stroke="${colour}" stroke-width="1.4"/><path d="${FLAG_SIGNS[flag.kind]}" transform="translate(${flag.x} ${Math.max(flag.y, FLAG_HEIGHT)})" fill="${colour}"/>${label}`
  })
  return [
    ...areas,
    `<path d="${layout.edge}" fill="none" stroke="#d6ecff" stroke-width="1.6"/>`,
    ...bands,
    ...limits,
    ...flags,
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function drawFoot(): string {
  const legend = CONTENT_CLASSES.map(({ label, dark }, index) => {
    const x = 40 + index * 128
    return `<rect x="${x}" y="588" width="12" height="12" rx="3" fill="${dark}"/><text x="${x + 17}" y="599" font-size="13.5" fill="#93a7ba">${escapeXml(label.replace(/,.*/, ''))}</text>`
  })
  return `${legend.join('\n')}
<text x="1160" y="599" font-size="15" fill="#93a7ba" text-anchor="end"><tspan fill="#6cb6ff" font-weight="700">tidemark</tspan></text>`
}

function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
