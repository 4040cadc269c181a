/** Elements that enclose a text of somebody else, such as `<system-reminder>`, so that the text cannot end them. */

/**
 * Returns the name of an element that encloses `text`: `name`, or `name` with the first number that the text does not
 * contain, if the text has something that could pass for a tag of that name. The same text always gives the same name.
 */
export function chooseFrameName(name: string, text: string): string {
  const words = name.split('-')
  const tag = new RegExp(`<[\\W_]{0,8}${words.join('[\\W_]{0,3}')}`, 'i')
  if (!tag.test(text)) return name
  const numbered = new RegExp(`${words.at(-1)}[\\W_]{0,3}(\\d+)`, 'gi')
  const used = new Set([...text.matchAll(numbered)].map(([, number]) => Number(number)))
  let number = 2
  while (used.has(number)) number += 1
  return `${name}-${number}`
}
