/** Starts the page. */
import { render } from 'preact'
import { createPageSource } from './data/page-source.ts'
import { App } from './views/app.tsx'

const element = document.getElementById('page')
if (element !== null) {
  element.replaceChildren()
  render(<App source={createPageSource()} />, element)
}
