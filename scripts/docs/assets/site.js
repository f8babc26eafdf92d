// The pages of the documentation: theme, menu and search. `search` and `heedRoot` are defined before this file.
const root = document.documentElement
const themes = ['system', 'light', 'dark']
const button = document.querySelector('#theme')
const stored = () => {
  try {
    return localStorage.getItem('heed-docs-theme') ?? 'system'
  } catch {
    return 'system' // a browser that refuses storage follows the system
  }
}

function show(theme) {
  if (theme === 'system') delete root.dataset.theme
  else root.dataset.theme = theme
  button.textContent = `Theme: ${theme}`
}

show(stored())
button.addEventListener('click', () => {
  const theme = themes[(themes.indexOf(stored()) + 1) % themes.length]
  try {
    localStorage.setItem('heed-docs-theme', theme)
  } catch {
    // the choice then lasts as long as the page
  }
  show(theme)
})

const field = document.querySelector('#search')
const list = document.querySelector('#results')
const status = document.querySelector('#search-status')
let index
let selected = -1

// A script and not a fetch: pages that were opened from a disk may not fetch.
function load() {
  index ??= new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = `${globalThis.heedRoot}assets/search-index.js`
    script.addEventListener('load', () => resolve(globalThis.heedIndex))
    script.addEventListener('error', () => reject(new Error('The search index can not be loaded.')))
    document.head.append(script)
  })
  return index
}

function close() {
  list.hidden = true
  field.setAttribute('aria-expanded', 'false')
  field.removeAttribute('aria-activedescendant')
  selected = -1
}

function select(next) {
  const items = [...list.querySelectorAll('[role=option]')]
  if (items.length === 0) return
  selected = (next + items.length) % items.length
  for (const [at, item] of items.entries()) item.setAttribute('aria-selected', String(at === selected))
  field.setAttribute('aria-activedescendant', items[selected].id)
  items[selected].scrollIntoView({ block: 'nearest' })
}

async function update() {
  const query = field.value.trim()
  if (query === '') {
    close()
    status.textContent = ''
    return
  }
  let found
  try {
    found = globalThis.heedSearch(await load(), query)
  } catch (error) {
    status.textContent = error.message
    return
  }
  if (query !== field.value.trim()) return
  list.replaceChildren(...found.map(({ page, title, id, heading, text }, at) => {
    const item = document.createElement('li')
    item.id = `result-${at}`
    item.setAttribute('role', 'option')
    item.setAttribute('aria-selected', 'false')
    const link = document.createElement('a')
    link.href = `${globalThis.heedRoot}${page}${id === '' ? '' : `#${id}`}`
    link.tabIndex = -1
    const name = document.createElement('b')
    name.textContent = heading === title || heading === '' ? title : `${title}: ${heading}`
    const part = document.createElement('span')
    part.textContent = text
    link.append(name, part)
    item.append(link)
    return item
  }))
  list.hidden = found.length === 0
  field.setAttribute('aria-expanded', String(found.length > 0))
  status.textContent = found.length === 0 ? `Nothing found for “${query}”.` : `${found.length} results`
  selected = -1
}

field.addEventListener('focus', () => void load().catch(() => {}), { once: true })
field.addEventListener('input', () => void update())
field.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault()
    select(event.key === 'ArrowDown' ? selected + 1 : selected < 0 ? -1 : selected - 1)
  } else if (event.key === 'Enter') {
    event.preventDefault()
    list.querySelectorAll('a')[Math.max(selected, 0)]?.click()
  } else if (event.key === 'Escape') {
    close()
  }
})
list.addEventListener('click', close)
document.addEventListener('click', (event) => {
  if (!event.target.closest('.search')) close()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return
  event.preventDefault()
  field.focus()
})

// Without scripts the menu of a phone is open.
if (matchMedia('(max-width: 760px)').matches) document.querySelector('.menu details').open = false
