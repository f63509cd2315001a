import { tell } from './announce.ts'
import { FIELD_LIMIT, isHeavy, isLong } from './long-text.ts'
import './long-fields.css'

/** Of so many parts the browser lays out all in time. */
const MOST_PARTS = 100

/** Takes nothing into a text area that makes its text heavy, such as a paste, and lets the page be laid out whole beside a long one. */
export function watchFields(): void {
  addEventListener('beforeinput', (event) => {
    const { target, data } = event
    if (!(target instanceof HTMLTextAreaElement) || data === null || data.length < 2) return
    const { value, selectionStart, selectionEnd } = target
    if (!isHeavy(value.slice(0, selectionStart) + data.replaceAll(/\r\n?/g, '\n') + value.slice(selectionEnd))) return
    event.preventDefault()
    tell(`This text is too long to be written here. ${FIELD_LIMIT} ae and the API take it.`, 'bad')
  })
  addEventListener('input', ({ target }) => {
    if (!(target instanceof HTMLTextAreaElement)) return
    const laysOutAll = isLong(target.value) && document.querySelectorAll('.part').length <= MOST_PARTS
    document.body.classList.toggle('has-long-field', laysOutAll)
  })
}
