# Runs cells in R: reads the path of each from descriptor 3, and answers there when it has ended. R itself cannot
# open a descriptor that is a socket, so two processes of cat copy the lines. Names are kept; each visible value
# is shown, the last one is the result; a figure is drawn on a device that was opened before the cell, and stored
# as PNG and SVG. An interrupt ends the cell.
local({
  PIECE <- 30000L
  FIGURE_MOST <- 4e6
  STEPS_MOST <- 64L
  OURS <- quote(eval(expression, globalenv()))
  paths <- pipe("trap '' INT; echo $$; exec cat <&3 2>/dev/null", "rb")
  reader <- as.integer(readLines(paths, 1L))
  reg.finalizer(environment(), function(...) tools::pskill(reader), onexit = TRUE) # R waits for its pipes to end
  answers <- pipe("trap '' INT; exec cat >&3 2>/dev/null", "wb")

  # --- JSON, which base R does not have ---
  quoted <- function(text) {
    text <- iconv(paste(enc2utf8(as.character(text)), collapse = "\n"), "UTF-8", "UTF-8", sub = "\ufffd")
    text <- gsub("\\", "\\\\", text, fixed = TRUE)
    text <- gsub("\"", "\\\"", text, fixed = TRUE)
    text <- gsub("\n", "\\n", text, fixed = TRUE)
    text <- gsub("\t", "\\t", text, fixed = TRUE)
    text <- gsub("\r", "\\r", text, fixed = TRUE)
    for (code in c(1:8, 11:12, 14:31))
      text <- gsub(intToUtf8(code), sprintf("\\u%04x", code), text, fixed = TRUE)
    paste0("\"", text, "\"")
  }

  object <- function(fields)
    paste0("{", paste0("\"", names(fields), "\":", unlist(fields), collapse = ","), "}")

  base64 <- function(bytes) {
    letters64 <- utf8ToInt("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    missing <- -length(bytes) %% 3L
    groups <- matrix(as.integer(c(bytes, raw(missing))), nrow = 3L)
    sextets <- rbind(groups[1L, ] %/% 4L, groups[1L, ] %% 4L * 16L + groups[2L, ] %/% 16L,
                     groups[2L, ] %% 16L * 4L + groups[3L, ] %/% 64L, groups[3L, ] %% 64L)
    codes <- letters64[sextets + 1L]
    if (missing > 0L)
      codes[seq.int(length(codes) - missing + 1L, length(codes))] <- utf8ToInt("=")
    intToUtf8(codes)
  }

  tell <- function(what, json) {
    bytes <- charToRaw(json)
    for (first in seq.int(1L, length(bytes), PIECE)) {
      last <- min(first + PIECE - 1L, length(bytes))
      writeBin(c(charToRaw(paste0(if (last == length(bytes)) toupper(what) else what, " ")),
                 bytes[first:last], charToRaw("\n")), answers)
    }
  }

  # --- values ---
  show_value <- function(what, value) {
    text <- utils::capture.output(if (isS4(value)) methods::show(value) else print(value))
    if (length(text) > 0L) # an object that only draws, such as a plot of grid, has no text
      tell(what, object(list(data = object(list("text/plain" = quoted(text))))))
  }

  # --- figures ---
  figures <- list(device = 0L, folder = "", has_begun = FALSE, pages = list())

  open_device <- function(...) {
    figures$folder <<- tempfile("figures")
    dir.create(figures$folder)
    grDevices::png(file.path(figures$folder, "%03d.png"), 640, 480, type = "cairo")
    grDevices::dev.control("enable")
    figures$device <<- grDevices::dev.cur()
    figures$has_begun <<- FALSE
    figures$pages <<- list()
  }

  # Records a page before the next one replaces it, to make SVG from it.
  keep_page <- function(...) {
    if (figures$device == 0L || grDevices::dev.cur() != figures$device)
      return()
    page <- tryCatch(grDevices::recordPlot(), error = function(error) NULL)
    if (!is.null(page) && !is.null(page[[1L]]))
      figures$pages[[length(figures$pages) + 1L]] <<- page
  }

  # Several plots may share a page, and the first plot has no page before it.
  before_plot <- function(...) {
    if (!tryCatch(isTRUE(graphics::par("page")), error = function(error) FALSE))
      return()
    if (figures$has_begun)
      keep_page()
    figures$has_begun <<- TRUE
  }

  as_svg <- function(page) {
    file <- tempfile(fileext = ".svg")
    on.exit(unlink(file))
    tryCatch({
      device <- grDevices::dev.cur()
      grDevices::svg(file, 640 / 72, 480 / 72)
      ours <- grDevices::dev.cur()
      tryCatch(grDevices::replayPlot(page), finally = {
        grDevices::dev.off(ours)
        if (device > 1L)
          grDevices::dev.set(device)
      })
      if (file.size(file) <= FIGURE_MOST) paste(readLines(file, warn = FALSE), collapse = "\n")
    }, error = function(error) NULL)
  }

  show_figures <- function() {
    if (figures$device == 0L)
      return()
    if (figures$device %in% grDevices::dev.list()) {
      current <- grDevices::dev.cur()
      grDevices::dev.set(figures$device)
      keep_page()
      grDevices::dev.off(figures$device)
      if (current != figures$device && current %in% grDevices::dev.list())
        grDevices::dev.set(current)
    }
    figures$device <<- 0L
    files <- sort(list.files(figures$folder, full.names = TRUE))
    for (at in seq_along(files)) {
      size <- file.size(files[at])
      if (size > FIGURE_MOST)
        next
      data <- list("image/png" = quoted(base64(readBin(files[at], "raw", size))))
      svg <- if (length(figures$pages) == length(files)) as_svg(figures$pages[[at]])
      if (!is.null(svg))
        data[["image/svg+xml"]] <- quoted(svg)
      data[["text/plain"]] <- quoted("<figure 640x480>")
      tell("d", object(list(data = object(data))))
    }
    unlink(figures$folder, recursive = TRUE)
    figures$pages <<- list()
  }

  # --- errors ---
  name_of <- function(error) {
    name <- class(error)[1L]
    if (name == "interrupt") "KeyboardInterrupt" else if (name == "simpleError") "Error" else name
  }

  # The call of a condition, unless it is our own: conditions that the cell signals at its top level have none.
  call_of <- function(condition) {
    call <- conditionCall(condition)
    if (!identical(call, OURS)) call
  }

  text_of <- function(call)
    paste(utils::head(deparse(call, nlines = 3L), 2L), collapse = " ")

  frame_of <- function(call) {
    place <- attr(call, "srcref")
    file <- if (is.null(place)) "" else attr(place, "srcfile")$filename
    what <- if (is.symbol(call[[1L]])) as.character(call[[1L]]) else ""
    object(list(file = quoted(file), line = if (is.null(place)) 0L else place[1L], "function" = quoted(what),
                code = quoted(text_of(call))))
  }

  show_error <- function(error, calls) {
    value <- conditionMessage(error)
    call <- call_of(error)
    first <- if (inherits(error, "interrupt")) "Interrupted"
             else if (is.null(call)) paste0("Error: ", value)
             else paste0("Error in ", text_of(call), " : ", value)
    steps <- utils::tail(calls, STEPS_MOST)
    lines <- vapply(steps, text_of, "")
    if (length(lines) > 0L)
      first <- c(first, "Traceback:", sprintf("%d: %s", seq_along(lines), lines))
    tell("e", object(list(name = quoted(name_of(error)), value = quoted(value), traceback = quoted(first),
                          frames = paste0("[", paste(vapply(steps, frame_of, ""), collapse = ","), "]"))))
  }

  # --- cells ---
  count <- 0L
  calls <- list()
  began <- 0L

  # Only the calls of the cell: not our own before it, nor those of R that signal the error.
  keep_calls <- function(error) {
    all <- sys.calls()
    ends <- length(all) - 1L
    if (inherits(error, "simpleError") && ends > 0L && identical(all[[ends]][[1L]], quote(.handleSimpleError)))
      ends <- ends - 1L
    calls <<- if (ends > began) all[(began + 1L):ends] else list()
    calls <<- Filter(function(call) !identical(call[[1L]], quote(stop)) && !identical(call[[1L]], quote(h)), calls)
  }

  one <- function(expression) {
    began <<- sys.nframe() + 3L # withVisible, eval and its own eval
    withVisible(eval(expression, globalenv()))
  }

  run_all <- function(code, name) {
    lines <- strsplit(code, "\n", fixed = TRUE)[[1L]]
    parsed <- tryCatch(parse(text = lines, keep.source = TRUE, srcfile = srcfilecopy(name, lines)),
                       error = function(error) {
                         stop(structure(class = c("parseError", "error", "condition"),
                                        list(message = conditionMessage(error), call = NULL)))
                       })
    for (at in seq_along(parsed)) {
      result <- one(parsed[at])
      if (result$visible)
        show_value(if (at == length(parsed)) "v" else "d", result$value)
    }
  }

  # R prints "Warning in" and the call; our own call would be a function that the user does not know.
  warn <- function(warning) {
    if (is.null(call_of(warning)) && !is.null(conditionCall(warning)) && getOption("warn") == 1L) {
      message("Warning: ", conditionMessage(warning))
      invokeRestart("muffleWarning")
    }
  }

  run <- function(path) {
    count <<- count + 1L
    calls <<- list()
    began <<- .Machine$integer.max
    failed <- function(error) {
      show_error(error, calls)
      1L
    }
    code <- tryCatch({
      code <- paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
      allowInterrupts(withCallingHandlers(run_all(code, sprintf("<cell %d>", count)), error = keep_calls,
                                          warning = warn))
      0L
    }, error = failed, interrupt = failed)
    tryCatch(allowInterrupts(show_figures()), error = function(error) code <<- max(code, failed(error)),
             interrupt = function(interrupt) code <<- max(code, failed(interrupt)))
    code
  }

  display <- function(value) {
    show_value("d", value)
    invisible(value)
  }

  options(device = open_device, warn = 1L, keep.source = TRUE, menu.graphics = FALSE)
  setHook("before.plot.new", before_plot)
  setHook("before.grid.newpage", keep_page)
  attach(list(display = display), name = "glovebox", warn.conflicts = FALSE)
  suspendInterrupts(repeat {
    path <- readLines(paths, 1L)
    if (length(path) == 0L)
      break
    tryCatch(allowInterrupts(for (at in 1:2000) NULL), interrupt = function(interrupt) NULL) # between cells
    code <- run(path)
    writeBin(charToRaw(sprintf("X %d\n", code)), answers)
    flush(answers)
  })
}, envir = new.env(parent = baseenv()))
