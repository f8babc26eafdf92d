type Theme = 'system' | 'light' | 'dark'

const key = 'heed-studio-theme'

/** The theme that the user chose; by default that of the system. */
export function readTheme(): Theme {
  const stored = localStorage.getItem(key)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

export function applyTheme(theme: Theme = readTheme()): void {
  if (theme === 'system') {
    localStorage.removeItem(key)
    document.documentElement.removeAttribute('data-theme')
  } else {
    localStorage.setItem(key, theme)
    document.documentElement.dataset.theme = theme
  }
}

export function nextTheme(theme: Theme): Theme {
  return theme === 'system' ? 'light' : theme === 'light' ? 'dark' : 'system'
}
