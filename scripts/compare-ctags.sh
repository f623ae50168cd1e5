#!/usr/bin/env bash
# How much of what universal-ctags finds does the index find too? Per language, on real source trees.
#
#   scripts/compare-ctags.sh            all languages; writes docs/symbols-recall.md
#   scripts/compare-ctags.sh ruby php   some; prints only
#
# The trees are Debian source packages and npm packages, fetched once into target/recall (over 100 MB unpacked). What was
# missed is listed in target/recall/missed-LANGUAGE.txt. Needs apt, npm, python3 and, to install ctags, root.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/target/recall
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/trees"

command -v ctags >/dev/null && ctags --version | grep -q 'Universal Ctags' || apt-get install -y universal-ctags

declare -A trees=(
  [rust]="rust-ripgrep rust-serde rust-clap bat cargo"
  [python]="jinja2 python-django"
  [javascript]="node-express node-commander uglify-js jquery node-browserify node-moment"
  [typescript]="node-redux npm:rxjs@7.8.1 npm:zod@3.25.76"
  [go]="golang-github-spf13-cobra golang-github-gin-gonic-gin golang-github-prometheus-common"
  [java]="libcommons-lang3-java guava-libraries junit4"
  [c]="lua5.4 jq redis zlib"
  [cpp]="leveldb fmtlib googletest"
  [c-sharp]="nunit keepass2"
  [ruby]="puma rubocop ruby-sidekiq ruby-nokogiri"
  [php]="php-monolog composer doctrine"
  [bash]="dracut git initramfs-tools rkhunter debootstrap devscripts"
  [kotlin]="kotlinx-coroutines okio kotlinx-atomicfu"
  [lua]="awesome luarocks neovim"
  [elixir]="elixir-lang"
  [haskell]="haskell-aeson xmonad hlint"
  [ocaml]="ocaml-dune ocaml-re"
)
order=(rust python javascript typescript go java c cpp c-sharp ruby php bash kotlin lua elixir haskell ocaml)
chosen=("$@")
[ $# -gt 0 ] || chosen=("${order[@]}")

# A list of our own, so that the machine's package sources stay as they are; it asks where they do.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
read -r uri suite < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | grep -v -- -security | head -1)
echo "deb-src [signed-by=$keys] $uri $suite main" >"$work/sources.list"
apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -qq)

fetch() { # PACKAGE: its upstream sources, below target/recall/trees/PACKAGE
  local to=$work/trees/$1
  [ -d "$to" ] && return
  if [[ $1 == npm:* ]]; then fetch_npm "${1#npm:}" "$to"; else fetch_debian "$1" "$to"; fi
}

fetch_npm() { # PACKAGE TO
  rm -rf "$2.part" && mkdir -p "$work/download/npm" "$2.part"
  local archive
  archive=$(cd "$work/download/npm" && npm pack --silent "$1") || return 1
  tar -xf "$work/download/npm/$archive" -C "$2.part" && mv "$2.part" "$2"
}

fetch_debian() { # PACKAGE TO
  local to=$2
  [ -n "$(ls "$work/lists"/*Sources* 2>/dev/null)" ] || apt-get "${apt[@]}" update
  rm -rf "$to.part"
  mkdir -p "$work/download/$1" "$to.part"
  (cd "$work/download/$1" && apt-get "${apt[@]}" source --download-only --tar-only "$1" >/dev/null 2>&1) || return 1
  local archive
  # Native packages have no .orig; others may have components beside it, which are other people's projects.
  archive=$(find "$work/download/$1" -name '*.orig.tar.*' ! -name '*.asc' | head -1)
  [ -n "$archive" ] || archive=$(find "$work/download/$1" -name '*.tar.*' ! -name '*.debian.tar.*' ! -name '*.asc' | head -1)
  tar -xf "$archive" -C "$to.part" || return 1
  mv "$to.part" "$to"
}

cargo build --quiet --release -p hardpan-symbols --example dump --features giants
# Another build may replace the example while this runs.
cp target/release/examples/dump "$work/dump"
for language in "${chosen[@]}"; do
  line=$language
  for package in ${trees[$language]}; do
    # A mirror may lack one; the table names those that were compared.
    if fetch "$package"; then line+=" $package"; else echo "left out: $package" >&2; fi
  done
  echo "$line"
done | python3 scripts/compare-ctags.py "$work" "$([ $# -gt 0 ] || echo docs/symbols-recall.md)"
